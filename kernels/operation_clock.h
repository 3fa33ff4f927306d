#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tern/core/device.h"

namespace tern {

/// What all calls of one operation have taken together.
struct OperationTime {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
};

/// Where the time of a thread's operations goes, by the clock of the device that they run on: from the begin of one to
/// the begin of the next counts for it, so that nothing of a step is left out. Used by one thread.
class OperationClock {
 public:
  virtual ~OperationClock() = default;
  /// `name` is a constant; nullptr: what comes now counts for nothing.
  virtual void begin(const char* name) = 0;
  /// So far, the longest first; waits for the device.
  std::vector<OperationTime> times();

 protected:
  void add(const char* name, double seconds);
  /// Adds whatever is not added yet.
  virtual void settle() {}

 private:
  std::map<std::string, OperationTime> times_;
};

/// On CUDA each operation is an NVTX range as well.
std::unique_ptr<OperationClock> make_operation_clock(Device device);
/// The part of it for CUDA; throws in a build without CUDA.
std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device);

/// While one lives, `clock` (null: none) hears of this thread's operations; ends what it times.
class OperationTiming {
 public:
  explicit OperationTiming(OperationClock* clock);
  ~OperationTiming();
  OperationTiming(const OperationTiming&) = delete;
  OperationTiming& operator=(const OperationTiming&) = delete;

 private:
  OperationClock* previous_;
};
/// The clock that hears of this thread's operations; null where none does.
OperationClock* operation_clock();

}  // namespace tern
