#include "tern/kernels/recording.h"

#include <utility>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/core/tensor.h"

namespace tern {
namespace cuda {
namespace {

/// The step in the recording that this thread is making.
struct StepCell {
  const int64_t* memory = nullptr;
  bool used = false;
};
thread_local StepCell step_cell;

class Graph final : public Recording {
 public:
  Graph(Device device, const std::function<void()>& work)
      : device_(device), step_(Tensor::zeros({}, {.dtype = DType::i64, .device = device})) {
    check(!waits_after_each(), "record: TERN_CUDA_SYNC=1 waits after every operation, and recorded work must not wait");
    capture(work);
  }
  ~Graph() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  void replay(uint32_t step) override {
    if (draws_) step_.copy_from(Tensor::full({}, step, {.dtype = DType::i64}));
    check_cuda(cudaGraphLaunch(graph_, enter(device_)), "replay");
  }

  size_t launches() const override { return launches_; }

 private:
  void capture(const std::function<void()>& work) {
    const cudaStream_t stream = enter(device_);
    cudaGraph_t recorded = nullptr;
    blocks_ = memory(device_).begin_recording();
    step_cell = {.memory = step_.data<int64_t>()};
    const auto end = [&] {
      draws_ = std::exchange(step_cell, {}).used;
      memory(device_).end_recording();
      return cudaStreamEndCapture(stream, &recorded);
    };
    try {
      // Relaxed mode: the recorded work may need a new block from the system, which other modes forbid.
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "record");
      work();
    } catch (...) {
      end();
      cudaGetLastError();
      if (recorded != nullptr) cudaGraphDestroy(recorded);
      throw;
    }
    check_cuda(end(), "record");
    cudaError_t status = cudaGraphGetNodes(recorded, nullptr, &launches_);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&graph_, recorded, 0);
    cudaGraphDestroy(recorded);
    check_cuda(status, "record");
  }

  Device device_;
  Tensor step_;
  bool draws_ = false;                                      ///< draws random numbers, which depend on the step
  std::unique_ptr<CachingBackend::RecordedBlocks> blocks_;  ///< the blocks that the graph reads and writes
  size_t launches_ = 0;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

const int64_t* recorded_step() {
  step_cell.used = step_cell.memory != nullptr;
  return step_cell.memory;
}

}  // namespace cuda

std::unique_ptr<Recording> record(Device device, const std::function<void()>& work) {
  check(device.type == DeviceType::cuda, "record: device ", device, ", expected one of CUDA");
  return std::make_unique<cuda::Graph>(device, work);
}

}  // namespace tern
