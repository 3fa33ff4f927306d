#include "tern/kernels/cuda/stopwatch.h"

#include <utility>

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/moment.h"

namespace tern::cuda {
namespace {

constexpr int kRuns = 4;                   // events cannot measure one run of a few microseconds well
constexpr long long kBusyCycles = 200000;  // 0.1 ms at 2 GHz: the host issues a graph and an event in less

__global__ void keep_busy(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // namespace

Stopwatch::Stopwatch(Device device, const std::function<void()>& run) : device_(device) {
  const cudaStream_t stream = enter(device);
  cudaGraph_t recorded = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "record");
  try {
    for (int i = 0; i < kRuns; ++i) run();
  } catch (...) {
    cudaStreamEndCapture(stream, &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &recorded), "record");
  const cudaError_t status = cudaGraphInstantiate(&graph_, recorded, 0);
  cudaGraphDestroy(recorded);
  check_cuda(status, "record");
}

Stopwatch::~Stopwatch() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

Stopwatch::Stopwatch(Stopwatch&& other) noexcept
    : device_(other.device_), graph_(std::exchange(other.graph_, nullptr)) {}

float Stopwatch::milliseconds() {
  const cudaStream_t stream = enter(device_);
  Moment begin, end;
  launch("stopwatch", device_, {.blocks = dim3(1), .threads = dim3(1)}, keep_busy, kBusyCycles);
  begin.record(stream);
  check_cuda(cudaGraphLaunch(graph_, stream), "replay");
  end.record(stream);
  return end.milliseconds_since(begin);
}

}  // namespace tern::cuda
