#include "tern/core/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace tern::cuda {
namespace {

constexpr size_t kBytes = size_t{4} << 20;

std::byte* at(void* memory, size_t offset) { return static_cast<std::byte*>(memory) + offset; }
const std::byte* at(const void* memory, size_t offset) { return static_cast<const std::byte*>(memory) + offset; }

}  // namespace

Staging::Staging() {
  for (Buffer& buffer : buffers_) check_cuda(cudaMallocHost(&buffer.memory, kBytes), "pinned memory");
}

Staging::~Staging() {
  for (Buffer& buffer : buffers_) cudaFreeHost(buffer.memory);
}

void Staging::copy_in(void* target, const void* source, size_t bytes, cudaStream_t stream) {
  for (size_t offset = 0; offset < bytes; offset += kBytes) {
    Buffer& buffer = buffers_[turn_];
    turn_ = 1 - turn_;
    const size_t count = std::min(kBytes, bytes - offset);
    buffer.used.synchronize();
    std::memcpy(buffer.memory, at(source, offset), count);
    check_cuda(cudaMemcpyAsync(at(target, offset), buffer.memory, count, cudaMemcpyHostToDevice, stream), "copy");
    buffer.used.record(stream);
  }
}

void Staging::copy_out(void* target, const void* source, size_t bytes, cudaStream_t stream) {
  if (bytes > kBytes) {  // the driver's own way is as fast where it is waited for anyway
    check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, stream), "copy");
    check_cuda(cudaStreamSynchronize(stream), "copy");
    return;
  }
  Buffer& buffer = buffers_[turn_];
  buffer.used.synchronize();
  check_cuda(cudaMemcpyAsync(buffer.memory, source, bytes, cudaMemcpyDeviceToHost, stream), "copy");
  check_cuda(cudaStreamSynchronize(stream), "copy");
  std::memcpy(target, buffer.memory, bytes);
}

}  // namespace tern::cuda
