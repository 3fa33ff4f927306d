#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

namespace tern::cuda {

/// The largest power of two, at most `most`, that the tensor's address is a multiple of.
inline uint32_t alignment_of(const Tensor& tensor, uint32_t most) {
  uint32_t alignment = most;
  while (reinterpret_cast<uintptr_t>(tensor.raw_data()) % alignment != 0) alignment /= 2;
  return alignment;
}
inline bool is_aligned(const void* memory, size_t bytes) { return reinterpret_cast<uintptr_t>(memory) % bytes == 0; }

}  // namespace tern::cuda
