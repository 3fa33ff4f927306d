#include "tern/kernels/recording.h"

#include <optional>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/kernels/cuda/captured_graph.h"

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
  Graph(Device device, const std::function<void()>& work, const Graph* earlier)
      : device_(device), step_(Tensor::zeros({}, {.dtype = DType::i64, .device = device})) {
    check(!waits_after_each(), "record: TERN_CUDA_SYNC=1 waits after every operation, and recorded work must not wait");
    const cudaStream_t stream = enter(device_);
    blocks_ = memory(device_).begin_recording(earlier != nullptr ? earlier->blocks_ : nullptr);
    step_cell = {.memory = step_.data<int64_t>()};
    const auto end = [this] {
      draws_ = std::exchange(step_cell, {}).used;
      memory(device_).end_recording();
    };
    try {
      graph_.emplace(stream, work);
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void replay(uint32_t step) override {
    if (draws_) step_.copy_from(Tensor::full({}, step, {.dtype = DType::i64}));
    graph_->replay(enter(device_));
  }

  size_t launches() const override { return graph_->launches(); }

 private:
  Device device_;
  Tensor step_;
  bool draws_ = false;                                      ///< draws random numbers, which depend on the step
  std::shared_ptr<CachingBackend::RecordedBlocks> blocks_;  ///< the blocks that the graph reads and writes
  std::optional<CapturedGraph> graph_;
};

}  // namespace

const int64_t* recorded_step() {
  step_cell.used = step_cell.memory != nullptr;
  return step_cell.memory;
}

}  // namespace cuda

std::unique_ptr<Recording> record(Device device, const std::function<void()>& work, const Recording* earlier) {
  check(device.type == DeviceType::cuda, "record: device ", device, ", expected one of CUDA");
  return std::make_unique<cuda::Graph>(device, work, dynamic_cast<const cuda::Graph*>(earlier));
}

bool is_recording() { return cuda::step_cell.memory != nullptr; }

}  // namespace tern
