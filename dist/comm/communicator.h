#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/dist/comm/transport.h"
#include "tern/dist/comm/work.h"

namespace tern {

enum class Reduction : uint8_t { sum, max };

namespace detail {
/// Elements [begin, end) of each rank's part, one after the other: part r is [cuts[r], cuts[r + 1]).
using Cuts = std::vector<int64_t>;
}  // namespace detail

/// A collective operation as it was called, checked: its tensors are on one device, and hold what the counts say.
struct CollectiveCall {
  Message message = {};        ///< without a number
  Tensor x = {}, y = {};       ///< undefined where this rank has none, y also where the operation is in place
  int root = 0;                ///< of those that have one
  detail::Cuts sends = {};     ///< of all_to_all: elements of x for each rank; of others: each rank's of the whole
  detail::Cuts receives = {};  ///< of all_to_all: elements of y from each rank

  bool in_place() const;
  /// Where the tensors are; the CPU where there are none.
  Device device() const { return x.defined() ? x.device() : y.defined() ? y.device() : Device{}; }
};

/// The collective operations of one rank. All ranks call the same operations in the same order; each returns at once,
/// runs in that order beside the caller or in its `wait`, and keeps its tensors alive. They are on one device, and must
/// not be touched (inputs: not changed) before the Work is done. Elements travel in storage order. What does not fit
/// the call is an Error; what goes wrong between ranks a PeerError from `Work::wait`, then and ever after. Called from
/// one thread; destruction waits for what is under way.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// What this rank has moved; from any thread.
  virtual Traffic traffic() const = 0;
  /// Tells the other ranks that this one ends and why: what they wait for throws that. Nothing if the job has failed
  /// already. From any thread.
  virtual void abandon(const std::string& cause) = 0;

  /// x of `root` in everyone's x.
  Work broadcast(const Tensor& x, int root, Account account = Account::payload);
  /// The same straight from the root, which sends (N-1) of x, the others nothing.
  Work fan_out(const Tensor& x, int root, Account account = Account::payload);
  /// Everyone's x becomes the reduction of all, the same bits on every rank; f32, f64, bf16, i64. Each rank sends
  /// 2(N-1)/N of x.
  Work all_reduce(const Tensor& x, Reduction reduction = Reduction::sum, Account account = Account::payload);
  /// y = part r of the sum of all x: elements ⌊r·n/N⌋ to ⌊(r+1)·n/N⌋ of n, on rank r. Each rank sends (N-1)/N of x.
  Work reduce_scatter(const Tensor& x, const Tensor& y, Account account = Account::payload);
  /// y = all ranks' x in rank order: rank r gives counts[r] elements, all as many where `counts` is absent.
  Work all_gather(const Tensor& x, const Tensor& y, Account account = Account::payload);
  Work all_gather(const Tensor& x, const Tensor& y, const std::vector<int64_t>& counts,
                  Account account = Account::payload);
  /// y = for each rank in order, what its x holds for this one: sends[r] elements go to rank r, receives[r] come from
  /// it.
  Work all_to_all(const Tensor& x, const Tensor& y, Account account = Account::payload);
  Work all_to_all(const Tensor& x, const std::vector<int64_t>& sends, const Tensor& y,
                  const std::vector<int64_t>& receives, Account account = Account::payload);
  /// y = this rank's part, counts[rank] elements, of the root's x; elsewhere x is ignored and may be undefined.
  Work scatter(const Tensor& x, const Tensor& y, int root, Account account = Account::payload);
  Work scatter(const Tensor& x, const Tensor& y, int root, const std::vector<int64_t>& counts,
               Account account = Account::payload);
  /// The root's y = all ranks' x in rank order; elsewhere y is ignored and may be undefined.
  Work gather(const Tensor& x, const Tensor& y, int root, Account account = Account::payload);
  Work gather(const Tensor& x, const Tensor& y, int root, const std::vector<int64_t>& counts,
              Account account = Account::payload);
  /// x goes to the next rank of the ring, y comes from the one before; ranks may pass on unlike numbers of elements.
  Work shift(const Tensor& x, const Tensor& y, Account account = Account::payload);
  /// Done once every rank has called it.
  Work barrier();

 private:
  virtual Work start(const CollectiveCall& call) = 0;
  std::vector<int64_t> equal_counts(const Tensor& part) const;
};

}  // namespace tern
