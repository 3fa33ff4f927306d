#include "tern/dist/comm/communicator.h"

#include <numeric>

#include "tern/core/error.h"
#include "tern/dist/comm/collectives.h"

namespace tern {
namespace {

using Counts = std::vector<int64_t>;

void check_tensor(const Tensor& tensor, const char* operation, const char* name) {
  check(tensor.defined(), operation, ": ", name, " is undefined");
}

void check_devices(const Tensor& x, const Tensor& y, const char* operation) {
  check(x.device() == y.device(), operation, ": x is on ", x.device(), " and y on ", y.device(),
        ", expected one device");
}

void check_count(const Tensor& tensor, int64_t count, DType dtype, const char* operation, const char* name) {
  check_tensor(tensor, operation, name);
  check(tensor.numel() == count && tensor.dtype() == dtype, operation, ": ", name, " holds ", tensor.numel(), " ",
        tensor.dtype(), ", expected ", count, " ", dtype);
}

void check_root(int root, int size, const char* operation) {
  check(root >= 0 && root < size, operation, ": root is rank ", root, " of ", size);
}

int64_t total(const Counts& counts, int size, const char* operation) {
  check(static_cast<int>(counts.size()) == size, operation, ": ", counts.size(), " counts for ", size, " ranks");
  for (const int64_t count : counts) check(count >= 0, operation, ": a count is ", count);
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

Message label(Operation operation, const Tensor& x, int64_t count, Account account) {
  return {0, operation, x.dtype(), static_cast<uint64_t>(count), account};
}

}  // namespace

bool CollectiveCall::in_place() const {
  const Operation operation = message.operation;
  return operation == Operation::broadcast || operation == Operation::fan_out ||
         operation == Operation::all_reduce_sum || operation == Operation::all_reduce_max;
}

Message CollectiveCall::recorded() const {
  Message own = message;
  if (parts_may_differ(message.operation)) own.count = static_cast<uint64_t>(x.numel());
  return own;
}

Work Communicator::begin(const CollectiveCall& call) {
  (call.in_place() ? call.x : call.y).mark_written();
  return start(call);
}

Counts Communicator::equal_counts(const Tensor& part) const {
  return Counts(size(), part.defined() ? part.numel() : 0);
}

Work Communicator::broadcast(Tensor& x, int root, Account account) {
  check_tensor(x, "broadcast", "x");
  check_root(root, size(), "broadcast");
  return begin({.message = label(Operation::broadcast, x, x.numel(), account), .x = x, .root = root});
}

Work Communicator::fan_out(Tensor& x, int root, Account account) {
  check_tensor(x, "fan_out", "x");
  check_root(root, size(), "fan_out");
  return begin({.message = label(Operation::fan_out, x, x.numel(), account), .x = x, .root = root});
}

Work Communicator::all_reduce(Tensor& x, Reduction reduction, Account account) {
  check_tensor(x, "all_reduce", "x");
  check(x.dtype() != DType::u8, "all_reduce: x holds u8, expected f32, f64, bf16 or i64");
  const auto operation = reduction == Reduction::sum ? Operation::all_reduce_sum : Operation::all_reduce_max;
  return begin({.message = label(operation, x, x.numel(), account), .x = x});
}

Work Communicator::reduce_scatter(const Tensor& x, Tensor& y, Account account) {
  check_tensor(x, "reduce_scatter", "x");
  check(x.dtype() != DType::u8, "reduce_scatter: x holds u8, expected f32, f64, bf16 or i64");
  const detail::Cuts cuts = detail::even_cuts(x.numel(), size());
  check_count(y, cuts[rank() + 1] - cuts[rank()], x.dtype(), "reduce_scatter", "y");
  check_devices(x, y, "reduce_scatter");
  return begin({.message = label(Operation::reduce_scatter, x, x.numel(), account), .x = x, .y = y, .sends = cuts});
}

Work Communicator::all_gather(const Tensor& x, Tensor& y, Account account) {
  return all_gather(x, y, equal_counts(x), account);
}

Work Communicator::all_gather(const Tensor& x, Tensor& y, const Counts& counts, Account account) {
  const int64_t count = total(counts, size(), "all_gather");
  check_tensor(x, "all_gather", "x");
  check_count(x, counts[rank()], x.dtype(), "all_gather", "x");
  check_count(y, count, x.dtype(), "all_gather", "y");
  check_devices(x, y, "all_gather");
  return begin(
      {.message = label(Operation::all_gather, x, count, account), .x = x, .y = y, .sends = detail::cuts_of(counts)});
}

Work Communicator::all_to_all(const Tensor& x, Tensor& y, Account account) {
  check_tensor(x, "all_to_all", "x");
  check(x.numel() % size() == 0, "all_to_all: x holds ", x.numel(), " elements, not a multiple of ", size(), " ranks");
  const Counts counts(size(), x.numel() / size());
  return all_to_all(x, counts, y, counts, account);
}

Work Communicator::all_to_all(const Tensor& x, const Counts& sends, Tensor& y, const Counts& receives,
                              Account account) {
  check_tensor(x, "all_to_all", "x");
  check_count(x, total(sends, size(), "all_to_all"), x.dtype(), "all_to_all", "x");
  check_count(y, total(receives, size(), "all_to_all"), x.dtype(), "all_to_all", "y");
  check_devices(x, y, "all_to_all");
  check(sends[rank()] == receives[rank()], "all_to_all: rank ", rank(), " sends itself ", sends[rank()],
        " elements and expects ", receives[rank()]);
  // Totals may differ between ranks here. Only the lengths of the parts must agree.
  return begin({.message = label(Operation::all_to_all, x, 0, account),
                .x = x,
                .y = y,
                .sends = detail::cuts_of(sends),
                .receives = detail::cuts_of(receives)});
}

Work Communicator::scatter(const Tensor& x, Tensor& y, int root, Account account) {
  return scatter(x, y, root, equal_counts(y), account);
}

Work Communicator::scatter(const Tensor& x, Tensor& y, int root, const Counts& counts, Account account) {
  const int64_t count = total(counts, size(), "scatter");
  check_root(root, size(), "scatter");
  check_tensor(y, "scatter", "y");
  check_count(y, counts[rank()], y.dtype(), "scatter", "y");
  if (rank() == root) {
    check_count(x, count, y.dtype(), "scatter", "x");
    check_devices(x, y, "scatter");
  }
  return begin({.message = label(Operation::scatter, y, count, account),
                .x = rank() == root ? x : Tensor(),
                .y = y,
                .root = root,
                .sends = detail::cuts_of(counts)});
}

Work Communicator::gather(const Tensor& x, Tensor& y, int root, Account account) {
  return gather(x, y, root, equal_counts(x), account);
}

Work Communicator::gather(const Tensor& x, Tensor& y, int root, const Counts& counts, Account account) {
  const int64_t count = total(counts, size(), "gather");
  check_root(root, size(), "gather");
  check_tensor(x, "gather", "x");
  check_count(x, counts[rank()], x.dtype(), "gather", "x");
  if (rank() == root) {
    check_count(y, count, x.dtype(), "gather", "y");
    check_devices(x, y, "gather");
  }
  return begin({.message = label(Operation::gather, x, count, account),
                .x = x,
                .y = rank() == root ? y : Tensor(),
                .root = root,
                .sends = detail::cuts_of(counts)});
}

Work Communicator::shift(const Tensor& x, Tensor& y, Account account) {
  check_tensor(x, "shift", "x");
  check_count(y, y.numel(), x.dtype(), "shift", "y");
  check_devices(x, y, "shift");
  check(size() > 1 || x.numel() == y.numel(), "shift: one rank passes on ", x.numel(), " elements and expects ",
        y.numel());
  return begin({.message = label(Operation::shift, x, 0, account), .x = x, .y = y});
}

Work Communicator::barrier() {
  return begin({.message = {.operation = Operation::barrier, .account = Account::overhead}});
}

}  // namespace tern
