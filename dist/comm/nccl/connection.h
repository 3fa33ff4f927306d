#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"
#include "tern/dist/comm/nccl/library.h"
#include "tern/dist/comm/transport.h"

namespace tern::nccl {

/// A CUDA stream beside the one in which the device's kernels run.
class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// Whether nothing in it is left to do.
  bool idle(const char* operation) const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// This rank's place in NCCL's communicator, and a stream for it beside the kernels'. Never blocks inside NCCL: every
/// wait ends with what NCCL reports, with the job or at the deadline; what goes wrong ends the job. Used by one thread
/// at a time.
class Connection {
 public:
  /// `job` outlives it; all its ranks connect with the same id, each with a device of its own.
  Connection(Transport& job, Device device, const ncclUniqueId& id, const Deadlines& deadlines);
  /// Leaves with the others; where the job has failed or an exception is under way, at once.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Puts what `enqueue` calls into the stream, behind the kernels before `issued`, and waits until it is done.
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
  int exceptions_;  ///< under way when it was made
  Stream stream_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace tern::nccl
