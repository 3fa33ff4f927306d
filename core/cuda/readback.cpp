#include "tern/core/readback.h"

#include <cstring>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"

namespace tern {
namespace {

/// Copies in a stream of its own, so that kernels do not wait for it, and through pinned memory: a copy to pageable
/// memory would make the CPU wait.
class CudaReadback final : public Readback {
 public:
  CudaReadback() { cuda::check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "readback"); }
  ~CudaReadback() override {
    cudaStreamSynchronize(copies_);
    cudaStreamDestroy(copies_);
    cudaFreeHost(memory_);
  }

  void start(const Tensor& source) override {
    if (source.bytes() > bytes_) grow(source.bytes());
    source_ = source;
    computed_.record(cuda::enter(source.device()));
    computed_.hold(copies_);
    cuda::check_cuda(cudaMemcpyAsync(memory_, source.raw_data(), source.bytes(), cudaMemcpyDeviceToHost, copies_),
                     "readback");
    copied_.record(copies_);
  }
  Tensor wait() override {
    check(source_.defined(), "readback: waited for before a start");
    copied_.synchronize();
    const Tensor result = Tensor::empty(source_.shape(), {.dtype = source_.dtype(), .format = source_.format()});
    std::memcpy(result.raw_data(), memory_, result.bytes());
    return result;
  }

 private:
  void grow(size_t bytes) {
    if (memory_ != nullptr) copied_.synchronize();
    cudaFreeHost(memory_);
    memory_ = nullptr;
    bytes_ = 0;
    cuda::check_cuda(cudaMallocHost(&memory_, bytes), "pinned memory");
    bytes_ = bytes;
  }

  void* memory_ = nullptr;
  size_t bytes_ = 0;
  cudaStream_t copies_ = nullptr;
  cuda::Event computed_, copied_;
  Tensor source_;  ///< keeps the memory from other work
};

}  // namespace

std::unique_ptr<Readback> make_readback(Device device) {
  cuda::enter(device);
  return std::make_unique<CudaReadback>();
}

}  // namespace tern
