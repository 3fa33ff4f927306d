#include "tern/kernels/operation_clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tern {
namespace {

thread_local OperationClock* current = nullptr;

class CpuClock final : public OperationClock {
 public:
  void begin(const char* name) override {
    const auto now = std::chrono::steady_clock::now();
    if (name_ != nullptr) add(name_, std::chrono::duration<double>(now - since_).count());
    name_ = name;
    since_ = now;
  }

 private:
  const char* name_ = nullptr;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

void OperationClock::add(const char* name, double seconds) {
  OperationTime& time = times_[name];
  ++time.calls;
  time.seconds += seconds;
}

std::vector<OperationTime> OperationClock::times() {
  settle();
  std::vector<OperationTime> times;
  for (const auto& [name, time] : times_) times.push_back({name, time.calls, time.seconds});
  std::ranges::stable_sort(times, std::ranges::greater{}, &OperationTime::seconds);
  return times;
}

std::unique_ptr<OperationClock> make_operation_clock(Device device) {
  if (device.type == DeviceType::cuda) return make_cuda_operation_clock(device);
  return std::make_unique<CpuClock>();
}

OperationTiming::OperationTiming(OperationClock* clock) : previous_(std::exchange(current, clock)) {}
OperationTiming::~OperationTiming() {
  if (current != nullptr) current->begin(nullptr);
  current = previous_;
}
OperationClock* operation_clock() { return current; }

}  // namespace tern
