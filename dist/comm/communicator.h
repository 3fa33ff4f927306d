#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/dist/comm/flight_record.h"
#include "tern/dist/comm/transport.h"
#include "tern/dist/comm/work.h"

namespace tern {

/// The reduction of an all-reduce.
enum class Reduction : uint8_t { sum, max };

namespace detail {
/// Bounds of the ranks' parts, one after the other: part r is elements [cuts[r], cuts[r + 1]).
using Cuts = std::vector<int64_t>;
}  // namespace detail

/// A checked call of a collective operation. Its tensors are on one device and have the sizes that the counts give.
struct CollectiveCall {
  Message message = {};        ///< without a sequence number
  Tensor x = {}, y = {};       ///< x is undefined if this rank gives none; y if this rank gets none or if in place
  int root = 0;                ///< of operations that have a root
  detail::Cuts sends = {};     ///< all_to_all: cuts of x by target rank; others: cuts of the whole by rank
  detail::Cuts receives = {};  ///< all_to_all: cuts of y by source rank

  bool in_place() const;
  /// The message for a record of this rank: its count is this rank's own if `parts_may_differ`.
  Message recorded() const;
  /// The device of the tensors; the CPU if there are no tensors.
  Device device() const { return x.defined() ? x.device() : y.defined() ? y.device() : Device{}; }
};

/// The collective operations of one rank. All ranks call the same operations in the same order. Each call returns at
/// once. The operations run in call order, beside the caller or in its `wait`, and keep their tensors alive. The
/// tensors are on one device. What an operation writes, it takes as Tensor&. Do not touch outputs and do not change
/// inputs before the Work is done. Elements travel in storage order. Throws Error if the arguments do not fit the call.
/// A failure between ranks is a PeerError from `Work::wait`, for this and every later operation. One thread calls a
/// Communicator. Its destructor waits for the operations under way.
/// A communicator may move CUDA tensors on the device. Then `wait` does not wait for the device, but orders: kernels
/// and copies that are issued after it see the result, and may overwrite the inputs. Such an operation can fail after
/// its `wait`, and then its outputs hold anything: see `confirm`.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The bytes that this rank has moved. Any thread may call it.
  virtual Traffic traffic() const = 0;
  /// Any thread may call it.
  virtual JobState state() const = 0;
  /// What this rank did last. Any thread may call it.
  virtual FlightRecord flight_record() const = 0;
  /// Tells the other ranks that this rank ends, and the cause; their waits throw it. Does nothing if the job has failed
  /// already. Any thread may call it.
  virtual void abandon(const std::string& cause) = 0;
  /// Throws PeerError if an operation on the device has failed. Call it between the copy of a result from the device to
  /// the CPU and its use. If it returns, the operations before that copy were right. Any thread may call it.
  virtual void confirm() const {}

  /// x on every rank = x of `root`, around the ring.
  Work broadcast(Tensor& x, int root, Account account = Account::payload);
  /// x on every rank = x of `root`, sent directly: the root sends (N-1) times x, the other ranks send nothing.
  Work fan_out(Tensor& x, int root, Account account = Account::payload);
  /// x on every rank = the reduction of all ranks' x, with the same bits on every rank. Takes f32, f64, bf16 and i64.
  /// Each rank sends 2(N-1)/N of x, or (N-1) times x if that is at most 4 KiB.
  Work all_reduce(Tensor& x, Reduction reduction = Reduction::sum, Account account = Account::payload);
  /// y on rank r = part r of the sum of all x: elements ⌊r·n/N⌋ to ⌊(r+1)·n/N⌋ of n. Each rank sends (N-1)/N of x.
  Work reduce_scatter(const Tensor& x, Tensor& y, Account account = Account::payload);
  /// y = all ranks' x in rank order. Rank r gives counts[r] elements; without `counts`, all ranks give equally many.
  Work all_gather(const Tensor& x, Tensor& y, Account account = Account::payload);
  Work all_gather(const Tensor& x, Tensor& y, const std::vector<int64_t>& counts, Account account = Account::payload);
  /// y = for each rank, in order, the part of its x for this rank. sends[r] elements go to rank r, and receives[r]
  /// elements come from rank r.
  Work all_to_all(const Tensor& x, Tensor& y, Account account = Account::payload);
  Work all_to_all(const Tensor& x, const std::vector<int64_t>& sends, Tensor& y, const std::vector<int64_t>& receives,
                  Account account = Account::payload);
  /// y = this rank's part, counts[rank] elements, of the root's x. On other ranks x is ignored and may be undefined.
  Work scatter(const Tensor& x, Tensor& y, int root, Account account = Account::payload);
  Work scatter(const Tensor& x, Tensor& y, int root, const std::vector<int64_t>& counts,
               Account account = Account::payload);
  /// y on the root = all ranks' x in rank order. On other ranks y is ignored and may be undefined.
  Work gather(const Tensor& x, Tensor& y, int root, Account account = Account::payload);
  Work gather(const Tensor& x, Tensor& y, int root, const std::vector<int64_t>& counts,
              Account account = Account::payload);
  /// x goes to the next rank of the ring, and y comes from the previous rank. Ranks may send different numbers of
  /// elements.
  Work shift(const Tensor& x, Tensor& y, Account account = Account::payload);
  /// Done after every rank has called it.
  Work barrier();

  /// Whether operations on CUDA tensors can be recorded (kernels/recording.h), if the ranks have done operations of the
  /// same kind and size before. Each replay then numbers, counts and watches them as a call does. The recording ends
  /// before the communicator.
  virtual bool can_be_recorded() const { return false; }

 private:
  virtual Work start(const CollectiveCall& call) = 0;
  /// Counts the write of the output (Tensor::version), then starts the call.
  Work begin(const CollectiveCall& call);
  std::vector<int64_t> equal_counts(const Tensor& part) const;
};

}  // namespace tern
