#include "tern/dist/comm/mpi/communicator.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/comm/collectives.h"
#include "tern/dist/comm/mpi.h"

namespace tern::mpi {
namespace {

using detail::Range;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return MPI_FLOAT;
    case DType::f64: return MPI_DOUBLE;
    case DType::bf16: return MPI_UINT16_T;  // MPI only carries it
    case DType::i64: return MPI_INT64_T;
    case DType::u8: return MPI_BYTE;
  }
  fail({"mpi: found dtype ", dtype, ", expected f32, f64, bf16, i64 or u8"});
}

/// The tensors are checked to have at most so many elements.
int to_int(int64_t count) { return static_cast<int>(count); }

/// into = the reduction of into and from, in the order of MPI's user functions.
template <Reduction kReduction, DType kType>
void reduce(void* from, void* into, int* count, MPI_Datatype*) {
  const size_t bytes = static_cast<size_t>(*count) * size_of(kType);
  detail::reduce(kReduction, kType, {static_cast<std::byte*>(into), bytes}, {static_cast<std::byte*>(from), bytes});
}

/// MPI's reduction, or an own one for what MPI lacks: sums of bf16, and maxima that keep a NaN.
class Operator {
 public:
  Operator(Operation operation, DType dtype) {
    const bool max = operation == Operation::all_reduce_max;
    if (dtype == DType::bf16)
      own(max ? reduce<Reduction::max, DType::bf16> : reduce<Reduction::sum, DType::bf16>);
    else if (max && dtype == DType::f32)
      own(reduce<Reduction::max, DType::f32>);
    else if (max && dtype == DType::f64)
      own(reduce<Reduction::max, DType::f64>);
    else
      known_ = max ? MPI_MAX : MPI_SUM;
  }
  ~Operator() {
    if (own_ != MPI_OP_NULL) MPI_Op_free(&own_);
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  MPI_Op get() const { return own_ == MPI_OP_NULL ? known_ : own_; }

 private:
  void own(MPI_User_function* function) { check_mpi(MPI_Op_create(function, 1, &own_), "MPI_Op_create"); }

  MPI_Op known_ = MPI_SUM, own_ = MPI_OP_NULL;
};

std::byte* at(const Tensor& tensor, int64_t element = 0) {
  if (!tensor.defined()) return nullptr;
  return static_cast<std::byte*>(tensor.raw_data()) + element * static_cast<int64_t>(size_of(tensor.dtype()));
}

Label label_of(const CollectiveCall& call) {
  return {.count = call.message.count,
          .sequence = call.message.sequence,
          .root = call.root,
          .operation = call.message.operation,
          .dtype = call.message.dtype};
}

/// Whether the operation is one of MPI's. Of the others, each part goes from its source rank to its target rank.
bool is_collective(Operation operation) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::all_reduce_sum:
    case Operation::all_reduce_max:
    case Operation::reduce_scatter:
    case Operation::all_gather: return true;
    default: return false;
  }
}

/// Whether an operation that is not collective has a message from one rank to another. It may be an empty one.
bool passes(const CollectiveCall& call, int from, int to, int size) {
  if (from == to) return false;
  switch (call.message.operation) {
    case Operation::fan_out:
    case Operation::scatter: return from == call.root;
    case Operation::gather: return to == call.root;
    case Operation::shift: return to == (from + 1) % size;
    default: return true;  // all_to_all
  }
}

/// Calls one of MPI's collectives, on CPU tensors.
void run_collective(const CollectiveCall& call, int size, MPI_Comm group) {
  const Message& message = call.message;
  const MPI_Datatype type = type_of(message.dtype);
  const int count = to_int(call.x.numel());
  std::vector<int> counts, begins;
  for (size_t rank = 0; rank + 1 < call.sends.size(); ++rank) {
    begins.push_back(to_int(call.sends[rank]));
    counts.push_back(to_int(call.sends[rank + 1] - call.sends[rank]));
  }
  const auto check = [&](int result) { check_mpi(result, message); };
  if (message.operation == Operation::broadcast) return check(MPI_Bcast(at(call.x), count, type, call.root, group));
  if (message.operation == Operation::all_gather) {
    if (std::ranges::count(counts, count) == size)
      return check(MPI_Allgather(at(call.x), count, type, at(call.y), count, type, group));
    return check(MPI_Allgatherv(at(call.x), count, type, at(call.y), counts.data(), begins.data(), type, group));
  }
  const Operator reduction(message.operation, message.dtype);
  if (message.operation == Operation::reduce_scatter)
    return check(MPI_Reduce_scatter(at(call.x), at(call.y), counts.data(), type, reduction.get(), group));
  check(MPI_Allreduce(MPI_IN_PLACE, at(call.x), count, type, reduction.get(), group));
}

/// Rank 0's name of the job.
std::string agree_on_job(MPI_Comm group) {
  std::string job = detail::make_job_name();  // as long on all ranks
  check_mpi(MPI_Bcast(job.data(), to_int(std::ssize(job)), MPI_BYTE, 0, group), "MPI_Bcast");
  return job;
}

}  // namespace

Session::Session() { mpi_place(); }

MpiCommunicator::MpiCommunicator(const Deadlines& deadlines)
    : rank_(group_.rank()), size_(group_.size()), job_(agree_on_job(group_)), recorder_(size_), watchdog_(deadlines) {}

/// Leaving is the last operation, so that a rank that still calls another one differs from this one.
MpiCommunicator::~MpiCommunicator() {
  const Label leaving = {.sequence = ++sequence_};
  queue_.add([&] { watched(leaving, [&] { check_mpi(MPI_Barrier(group_), "MPI_Barrier"); }); }).wait();
}

JobState MpiCommunicator::state() const {
  const auto [failure, failed] = watchdog_.failure();
  return {.job = job_, .failure = failure, .failed = failed};
}

void MpiCommunicator::abandon(const std::string& cause) { watchdog_.end_job({rank_, "ended: " + cause}); }

Work MpiCommunicator::start(const CollectiveCall& call) {
  for (const Tensor& tensor : {call.x, call.y})
    check(!tensor.defined() || tensor.numel() <= INT_MAX, call.message.operation, ": a tensor holds ", tensor.numel(),
          " elements, expected at most ", INT_MAX, ", because MPI counts no further");
  CollectiveCall numbered = call;
  numbered.message.sequence = ++sequence_;
  recorder_.queue(numbered.recorded());
  return queue_.add([this, call = std::move(numbered)] {
    recorder_.run(call.message.sequence, [&] {
      detail::run_on_cpu(call, [this](const CollectiveCall& on_cpu) { run(on_cpu); });
      count(call);
    });
  });
}

/// Ends the job if `body` throws, because the other ranks may be inside MPI.
template <class Body>
void MpiCommunicator::watched(const Label& label, const Body& body) {
  watchdog_.enter(label);
  try {
    body();
  } catch (const Error& error) {
    watchdog_.fail(join({"ended: ", error.what()}));
  }
  watchdog_.leave();
}

void MpiCommunicator::run(const CollectiveCall& call) {
  const Label label = label_of(call);
  watched(label, [&] {
    agree(label);
    if (call.message.operation == Operation::barrier)
      check_mpi(MPI_Barrier(group_), call.message);
    else if (is_collective(call.message.operation))
      run_collective(call, size_, group_);
    else
      transfer(call);
  });
}

/// Compares the first operation of each kind with the other ranks' operation. If they differ, MPI hangs or gives wrong
/// sums.
void MpiCommunicator::agree(const Label& label) {
  if (!agreed_.emplace(label.operation, label.dtype, label.count, label.root).second) return;
  std::vector<Label> labels(size_);
  check_mpi(MPI_Allgather(&label, sizeof label, MPI_BYTE, labels.data(), sizeof label, MPI_BYTE, agreement_),
            "agreement");
  for (int rank = 1; rank < size_; ++rank)
    if (labels[rank] != labels[0]) watchdog_.end_job(find_difference(rank, labels[rank], 0, labels[0]));
  const uint64_t others = (size_ - 1) * sizeof label;
  ledger_.sent(others);
  ledger_.received(others);
}

/// Moves each part by a message of its own. So the lengths of the parts are compared, too.
void MpiCommunicator::transfer(const CollectiveCall& call) {
  const Message& message = call.message;
  const MPI_Datatype type = type_of(message.dtype);
  const detail::Transfers parts = detail::direct_transfers(call, rank_, size_);
  constexpr int kTags = 32768;  // every MPI has at least as many
  const int tag = static_cast<int>(message.sequence % kTags);
  std::vector<MPI_Request> receives(size_, MPI_REQUEST_NULL), sends(size_, MPI_REQUEST_NULL);
  for (int peer = 0; peer < size_; ++peer) {
    if (!passes(call, peer, rank_, size_)) continue;
    const Range part = parts.receives[peer];
    std::byte* const place = at(call.in_place() ? call.x : call.y, part.begin);
    check_mpi(MPI_Irecv(place, to_int(part.count()), type, peer, tag, group_, &receives[peer]), message);
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (!passes(call, rank_, peer, size_)) continue;
    const Range part = parts.sends[peer];
    std::byte* const place = at(call.x, part.begin);
    check_mpi(MPI_Isend(place, to_int(part.count()), type, peer, tag, group_, &sends[peer]), message);
  }
  if (const Range own = parts.sends[rank_]; own.count() > 0)
    std::memcpy(at(call.y, parts.receives[rank_].begin), at(call.x, own.begin), own.count() * size_of(message.dtype));
  for (int peer = 0; peer < size_; ++peer)
    if (passes(call, peer, rank_, size_)) finish(receives[peer], peer, parts.receives[peer].count(), message);
  check_mpi(MPI_Waitall(size_, sends.data(), MPI_STATUSES_IGNORE), message);
}

/// Waits for a part, and compares its length with the expected one.
void MpiCommunicator::finish(MPI_Request& receive, int peer, int64_t expected, const Message& message) {
  const auto differ = [&](const MessagePart& found) {
    watchdog_.fail(
        join({"expects ", expected, " elements from rank ", peer, ", which sends ", found, " in ", message}));
  };
  MPI_Status status;
  const int result = MPI_Wait(&receive, &status);
  int kind = MPI_SUCCESS, found = 0;
  MPI_Error_class(result, &kind);
  if (kind == MPI_ERR_TRUNCATE) differ("more");
  check_mpi(result, message);
  check_mpi(MPI_Get_count(&status, type_of(message.dtype), &found), message);
  if (found != expected) differ(found);
}

void MpiCommunicator::count(const CollectiveCall& call) {
  if (call.message.operation == Operation::barrier) return;
  const detail::Volume moved = is_collective(call.message.operation) ? detail::moved_collectively(call, rank_, size_)
                                                                     : detail::moved_directly(call, rank_, size_);
  detail::count(call.message, moved, ledger_);
}

}  // namespace tern::mpi

namespace tern {

std::unique_ptr<Communicator> make_mpi(const Deadlines& deadlines) {
  return std::make_unique<mpi::MpiCommunicator>(deadlines);
}

}  // namespace tern
