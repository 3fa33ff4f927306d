#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/dist/comm/nccl/device_work.h"
#include "tern/dist/comm/nccl/library.h"
#include "tern/dist/comm/transport_communicator.h"

namespace tern::nccl {

/// A CUDA stream beside the stream of the device's kernels.
class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// This rank's part of NCCL's communicator, with its own stream beside the stream of the kernels. It never blocks
/// inside NCCL. A thread of its own watches the operations until the device has done them. If NCCL reports an error, if
/// the job fails or if the timeout passes, the job ends and NCCL is aborted, so that the kernels' stream goes on. One
/// thread at a time may call `start`, `record` and `replay`.
class Connection {
 public:
  /// `job` outlives the Connection. All ranks of the job connect with the same id, each with its own device.
  Connection(TransportCommunicator& job, Device device, const ncclUniqueId& id, const Deadlines& deadlines);
  /// Waits for the operations under way. Then leaves together with the other ranks; at once if the job has failed or an
  /// exception is under way.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Calls `enqueue` with NCCL's stream, and returns when the operation is in that stream, after the kernels before
  /// `work`. `tensors` are those that it uses. Throws PeerError; then NCCL may still run for a while, and the
  /// Connection keeps `tensors` until it has ended.
  using Enqueue = std::function<void(ncclComm_t, cudaStream_t)>;
  void start(const std::shared_ptr<DeviceWork>& work, std::vector<Tensor> tensors, const Enqueue& enqueue);
  /// The same for an operation of the recording that this thread makes; nobody watches it. `done` gets the step of each
  /// replay. Throws Error, and the job goes on, if it cannot be recorded; PeerError if NCCL has failed.
  void record(DeviceWork& work, std::vector<Tensor> tensors, const StepWord& done, const Enqueue& enqueue);
  /// From now on the watchdog watches an operation of a recording that is about to be replayed. Throws PeerError.
  void replay(std::shared_ptr<WorkUnderWay> work);
  /// Throws PeerError if NCCL was aborted. Any thread may call it.
  void confirm() const;

 private:
  template <class Step>
  void guarded(const Step& step);
  template <class Step>
  void ending_on_failure(const Step& step);
  template <class Use>
  auto use(const Use& use);
  void put(const DeviceWork& work, const Enqueue& enqueue);
  void watch_from_now(std::shared_ptr<WorkUnderWay> work);
  void settle(const std::string& operation, Clock::duration limit, const std::string& late);
  void watch();
  void look();
  bool job_failed() const;
  void end(bool abort, const std::string& failure);
  void await_end();
  bool works();

  Transport& job_;
  FlightRecorder& recorder_;
  Device device_;
  Clock::duration patience_;
  int exceptions_;  ///< exceptions under way at construction
  Stream stream_;

  mutable std::mutex mutex_;  ///< guards what follows, and NCCL's functions
  std::condition_variable changed_;
  ncclComm_t communicator_ = nullptr;                    ///< null once it ends
  std::string failure_;                                  ///< set before NCCL is aborted, so before wrong results
  std::deque<std::shared_ptr<WorkUnderWay>> under_way_;  ///< in the order of the device
  std::vector<Tensor> starting_;                         ///< of the operation that `start` puts into the stream
  Clock::time_point progress_;                           ///< when the first of them became the first
  bool leaves_ = false;
  std::shared_future<void> ended_;  ///< valid once the communicator ends

  std::thread watchdog_;  // last: it uses the other members
};

}  // namespace tern::nccl
