#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::cuda {

/// The training step that recorded work belongs to, each time it runs again. Owned by the recording. Used by one
/// thread.
class RecordedStep {
 public:
  explicit RecordedStep(Device device) : number_(Tensor::zeros({}, {.dtype = DType::i64, .device = device})) {}
  RecordedStep(const RecordedStep&) = delete;
  RecordedStep& operator=(const RecordedStep&) = delete;

  /// Runs `work`. Meanwhile this thread records, and the functions below add to this object.
  void record(const std::function<void()>& work);
  /// Call it before each replay: the recorded work is that of `step`. Throws what the functions of `before_replays` do.
  /// If there are any, steps must grow from replay to replay.
  void set(uint32_t step);

 private:
  friend const int64_t* recorded_step();
  friend void before_replays(std::function<void(uint32_t)> prepare);

  Tensor number_;         ///< i64 [], on the device
  bool is_read_ = false;  ///< recorded work reads the number
  int64_t last_ = -1;     ///< the step of the last replay
  std::vector<std::function<void(uint32_t)>> prepare_;
};

/// Whether this thread records.
bool records();
/// Address, in device memory, of the number of the training step. Work that is being recorded reads it there when it is
/// replayed. Null if this thread records nothing: then use the step that is given.
const int64_t* recorded_step();
/// Calls `prepare(step)` on the CPU before each replay of what this thread records, in the order of these calls. If it
/// throws, nothing is replayed. What it uses must outlive the recording. This thread must be recording.
void before_replays(std::function<void(uint32_t step)> prepare);

}  // namespace tern::cuda
