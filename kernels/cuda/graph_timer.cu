#include "tern/kernels/cuda/graph_timer.h"

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

GraphTimer::GraphTimer(Device device, const std::function<void(cudaStream_t)>& issue) : device_(device) {
  enter(device);
  cudaStream_t own = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "record");
  try {
    record(own, issue);
  } catch (...) {
    cudaStreamDestroy(own);
    throw;
  }
  cudaStreamDestroy(own);
}

GraphTimer::~GraphTimer() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

void GraphTimer::record(cudaStream_t stream, const std::function<void(cudaStream_t)>& issue) {
  cudaGraph_t recorded = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "record");
  try {
    for (int i = 0; i < kRuns; ++i) issue(stream);
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

float GraphTimer::milliseconds() {
  const cudaStream_t stream = enter(device_);
  Moment begin, end;
  launch("engine", device_, {.blocks = dim3(1), .threads = dim3(1)}, keep_busy, kBusyCycles);
  begin.record(stream);
  check_cuda(cudaGraphLaunch(graph_, stream), "replay");
  end.record(stream);
  return end.milliseconds_since(begin);
}

}  // namespace tern::cuda
