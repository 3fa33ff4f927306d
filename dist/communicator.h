#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/dist/collective.h"
#include "tern/dist/work.h"

namespace tern {

/// The collective operations of one rank on CPU tensors, over any transport. All ranks call the same operations in the
/// same order; each returns at once, runs in that order beside the caller or in its `wait`, and keeps its tensors
/// alive. They must not be touched (inputs: not changed) before the Work is done. Elements travel in storage order.
/// What does not fit the call is an Error; what goes wrong between ranks a PeerError from `Work::wait`, then and ever
/// after. Called from one thread; destruction waits for what is under way.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  /// What this rank has moved; from any thread.
  Traffic traffic() const { return transport_->traffic(); }

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
  Work start(Message message, std::function<void(const detail::Collective&)> run);
  std::vector<int64_t> equal_counts(const Tensor& part) const;

  std::unique_ptr<Transport> transport_;
  uint32_t sequence_ = 0;
  WorkQueue queue_;  // last: its thread uses the transport
};

}  // namespace tern
