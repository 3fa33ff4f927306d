#include "tern/dist/comm/nccl/device_work.h"

#include <utility>

#include "tern/core/cuda/recorded_step.h"
#include "tern/dist/comm/failure.h"

namespace tern::nccl {
namespace {

/// Events belong to the device that is the thread's when they are made.
Device entered(Device device) {
  cuda::enter(device);
  return device;
}

}  // namespace

DeviceWork::DeviceWork(const Message& message, Device device) : WorkUnderWay(message), device_(entered(device)) {
  issued_.record(cuda::enter(device));
}

void DeviceWork::enqueued(cudaStream_t stream, std::vector<Tensor> tensors) {
  const std::lock_guard lock(mutex_);
  ended_.record(stream);
  tensors_ = std::move(tensors);
}

void DeviceWork::join() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw PeerError(failure_);
  ended_.hold(cuda::enter(device_));
  tensors_.clear();  // the kernels that get their memory come after the operation
}

std::vector<Tensor> DeviceWork::end(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  return std::exchange(tensors_, {});
}

StepWord::StepWord(Device device) : memory_(device_backend(device).host_memory(sizeof(int64_t))) {
  *static_cast<int64_t*>(memory_.get()) = -1;
}

void StepWord::record(cudaStream_t stream) const {
  cuda::check_cuda(
      cudaMemcpyAsync(memory_.get(), cuda::recorded_step(), sizeof(int64_t), cudaMemcpyDeviceToHost, stream), "nccl");
}

}  // namespace tern::nccl
