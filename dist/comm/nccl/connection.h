#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"
#include "tern/dist/comm/nccl/library.h"
#include "tern/dist/comm/transport.h"

namespace tern::nccl {

/// A CUDA stream beside the stream of the device's kernels.
class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// Whether the stream has no work left.
  bool idle(const char* operation) const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// This rank's part of NCCL's communicator, with its own stream beside the stream of the kernels. It never blocks
/// inside NCCL. Every wait ends if NCCL is done or reports an error, if the job fails or if the timeout passes. Every
/// error ends the job. One thread at a time may use it.
class Connection {
 public:
  /// `job` outlives the Connection. All ranks of the job connect with the same id, each with its own device.
  Connection(Transport& job, Device device, const ncclUniqueId& id, const Deadlines& deadlines);
  /// Leaves together with the other ranks; at once if the job has failed or an exception is under way.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Calls `enqueue` with the stream, after the kernels before `issued`, and waits until that work is done.
  using Enqueue = std::function<void(ncclComm_t, cudaStream_t)>;
  void run(const Message& message, const cuda::Event& issued, const Enqueue& enqueue);

 private:
  template <class Step>
  void guarded(const Step& step);
  template <class Done>
  void wait(Clock::duration limit, const std::string& late, const Done& done) const;
  bool job_failed() const;
  void end(bool abort);

  Transport& job_;
  Device device_;
  Clock::duration patience_;
  int exceptions_;  ///< exceptions under way at construction
  Stream stream_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace tern::nccl
