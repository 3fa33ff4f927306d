#pragma once

#include <atomic>

#include "tern/core/parallel.h"
#include "tern/core/tensor.h"

namespace tern::cpu {

/// Scratch memory for the bodies of one `parallel_for`, taken from the allocator before the loop starts: how much a
/// step takes then does not depend on which bodies happen to run at the same time.
class ThreadScratch {
 public:
  /// `floats` for each of `thread_count()` bodies.
  explicit ThreadScratch(int64_t floats)
      : stride_((floats + kAlignment - 1) / kAlignment * kAlignment),
        memory_(Tensor::empty({thread_count() * stride_})) {}

  /// One body's share, aligned to 64 bytes; each body calls it once.
  float* take() { return memory_.data<float>() + next_++ * stride_; }

 private:
  static constexpr int64_t kAlignment = 16;

  int64_t stride_;
  Tensor memory_;
  std::atomic<int64_t> next_ = 0;
};

}  // namespace tern::cpu
