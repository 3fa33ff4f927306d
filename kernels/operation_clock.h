#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tern/core/device.h"

namespace tern {

/// The total time of all calls of one operation.
struct OperationTime {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
};

/// Measures the time of a thread's operations with the clock of the device that runs them. The time from the start of
/// one operation to the start of the next counts for the first one, so that all the time of a step is counted. Used by
/// one thread.
class OperationClock {
 public:
  virtual ~OperationClock() = default;
  /// Starts operation `name`, a string that lives for the whole program. If `name` is nullptr, the time from now on is
  /// not counted.
  virtual void begin(const char* name) = 0;
  /// The times so far, longest first. Waits for the device.
  std::vector<OperationTime> times();

 protected:
  void add(const char* name, double seconds);
  /// Adds the times that are measured but not added yet.
  virtual void settle() {}

 private:
  std::map<std::string, OperationTime> times_;
};

/// Makes the clock for `device`. On CUDA, each operation is also an NVTX range.
std::unique_ptr<OperationClock> make_operation_clock(Device device);
/// Makes the clock for a CUDA device. Throws in a build without CUDA.
std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device);

/// While this object lives, `clock` measures this thread's operations; none is measured if `clock` is null. Its
/// destructor ends the operation that is being timed and restores the previous clock.
class OperationTiming {
 public:
  explicit OperationTiming(OperationClock* clock);
  ~OperationTiming();
  OperationTiming(const OperationTiming&) = delete;
  OperationTiming& operator=(const OperationTiming&) = delete;

 private:
  OperationClock* previous_;
};
/// The clock that measures this thread's operations; null if there is none.
OperationClock* operation_clock();

}  // namespace tern
