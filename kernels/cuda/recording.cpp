#include "tern/kernels/recording.h"

#include <optional>

#include "tern/core/cuda/recorded_step.h"
#include "tern/core/error.h"
#include "tern/kernels/cuda/captured_graph.h"

namespace tern {
namespace cuda {
namespace {

class Graph final : public Recording {
 public:
  Graph(Device device, const std::function<void()>& work, const Graph* earlier) : device_(device), step_(device) {
    check(!waits_after_each(), "record: TERN_CUDA_SYNC=1 waits after every operation, and recorded work must not wait");
    const cudaStream_t stream = enter(device_);
    blocks_ = memory(device_).begin_recording(earlier != nullptr ? earlier->blocks_ : nullptr);
    try {
      graph_.emplace(stream, [&] { step_.record(work); });
    } catch (...) {
      memory(device_).end_recording();
      throw;
    }
    memory(device_).end_recording();
  }

  void replay(uint32_t step) override {
    step_.set(step);
    graph_->replay(enter(device_));
  }

  size_t launches() const override { return graph_->launches(); }

 private:
  Device device_;
  RecordedStep step_;
  std::shared_ptr<CachingBackend::RecordedBlocks> blocks_;  ///< the blocks that the graph reads and writes
  std::optional<CapturedGraph> graph_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Recording> record(Device device, const std::function<void()>& work, const Recording* earlier) {
  check(device.type == DeviceType::cuda, "record: device ", device, ", expected one of CUDA");
  return std::make_unique<cuda::Graph>(device, work, dynamic_cast<const cuda::Graph*>(earlier));
}

bool is_recording() { return cuda::records(); }

}  // namespace tern
