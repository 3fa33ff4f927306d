#include <nvtx3/nvToolsExt.h>

#include <deque>

#include "tern/kernels/cuda/moment.h"
#include "tern/kernels/operation_clock.h"

namespace tern {
namespace cuda {
namespace {

/// Records a moment in the stream at the start of each operation, and reads the moments much later.
class CudaClock final : public OperationClock {
 public:
  explicit CudaClock(Device device) : device_(device) {}

  void begin(const char* name) override {
    if (!marks_.empty() && marks_.back().name != nullptr) nvtxRangePop();
    if (name != nullptr) nvtxRangePushA(name);
    const cudaStream_t stream = enter(device_);  // a moment belongs to the thread's device
    marks_.push_back({name, take_moment()});
    marks_.back().begin->record(stream);
    if (marks_.size() > kMostMarks) read(marks_.size() / 2);
  }

 private:
  static constexpr size_t kMostMarks = 4096;

  struct Mark {
    const char* name;
    std::unique_ptr<Moment> begin;
  };

  std::unique_ptr<Moment> take_moment() {
    if (spare_.empty()) return std::make_unique<Moment>();
    auto moment = std::move(spare_.back());
    spare_.pop_back();
    return moment;
  }
  void settle() override {
    if (!marks_.empty()) read(marks_.size() - 1);
  }
  /// Adds the times of the oldest `count` marks.
  void read(size_t count) {
    for (; count > 0; --count) {
      if (marks_[0].name != nullptr) add(marks_[0].name, 1e-3 * marks_[1].begin->milliseconds_since(*marks_[0].begin));
      spare_.push_back(std::move(marks_.front().begin));
      marks_.pop_front();
    }
  }

  Device device_;
  std::deque<Mark> marks_;
  std::vector<std::unique_ptr<Moment>> spare_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device) {
  return std::make_unique<cuda::CudaClock>(device);
}

}  // namespace tern
