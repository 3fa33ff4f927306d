#include "tern/core/cuda/runtime.h"

#include <cstdlib>
#include <string_view>

#include "tern/core/error.h"

namespace tern::cuda {

bool waits_after_each() {
  static const bool waits = [] {
    const char* value = std::getenv("TERN_CUDA_SYNC");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return waits;
}

void check_cuda(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears the error, if CUDA can clear it, so that it is reported only once
  check_input(status != cudaErrorMemoryAllocation, operation,
              ": the GPU is out of memory: other programs may hold it, and a smaller batch needs less");
  fail({operation, ": CUDA: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")",
        waits_after_each() ? "" : "; an operation before it may be the cause: TERN_CUDA_SYNC=1 finds it"});
}

Event::Event() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
Event::~Event() { cudaEventDestroy(event_); }
void Event::record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "event"); }
void Event::hold(cudaStream_t stream) const { check_cuda(cudaStreamWaitEvent(stream, event_, 0), "event"); }
bool Event::passed() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady)
    cudaGetLastError();  // it is no error of a later call
  else
    check_cuda(state, "event");
  return state == cudaSuccess;
}
void Event::synchronize() const { check_cuda(cudaEventSynchronize(event_), "event"); }

}  // namespace tern::cuda
