#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/tensor.h"
#include "tern/dist/comm/transport.h"

namespace tern::nccl {

/// An operation on CUDA tensors, from its call until the device has done it. The queue's task, the Connection and those
/// who wait for it share it. Thread-safe.
class DeviceWork {
 public:
  /// The operation comes after the kernels that have been issued so far.
  DeviceWork(const Message& message, Device device);

  const Message& message() const { return message_; }
  /// Makes work that is put into `stream` from now on wait for those kernels.
  void follow(cudaStream_t stream) const { issued_.hold(stream); }
  /// The operation is in `stream`, and uses `tensors`. The other functions below may be called from now on.
  void enqueued(cudaStream_t stream, std::vector<Tensor> tensors);
  /// Makes kernels that are issued from now on wait for the operation. Throws PeerError if it has failed.
  void join();
  /// Whether the device has done the operation.
  bool passed() const { return ended_.passed(); }
  /// It is done, or else it has failed for this reason. Returns the tensors that it may still use.
  std::vector<Tensor> end(const std::string& failure = "");

 private:
  Message message_;
  Device device_;
  cuda::Event issued_, ended_;
  std::mutex mutex_;             ///< guards what follows
  std::vector<Tensor> tensors_;  ///< kept so that no other work gets their memory
  std::string failure_;
};

}  // namespace tern::nccl
