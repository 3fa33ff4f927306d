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

struct OwnStream {
  explicit OwnStream(const std::function<void()>& before_end) : leave(before_end) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "record");
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() {
    leave();
    cudaStreamDestroy(stream);
  }

  const std::function<void()>& leave;
  cudaStream_t stream = nullptr;
};

}  // namespace

GraphTimer::GraphTimer(Device device, const std::function<void(cudaStream_t)>& issue,
                       const std::function<void()>& leave)
    : device_(device) {
  enter(device);
  const OwnStream own(leave);
  graph_.emplace(own.stream, [&] {
    for (int i = 0; i < kRuns; ++i) issue(own.stream);
  });
}

float GraphTimer::milliseconds() {
  const cudaStream_t stream = enter(device_);
  Moment begin, end;
  launch("engine", device_, {.blocks = dim3(1), .threads = dim3(1)}, keep_busy, kBusyCycles);
  begin.record(stream);
  graph_->replay(stream);
  end.record(stream);
  return end.milliseconds_since(begin);
}

}  // namespace tern::cuda
