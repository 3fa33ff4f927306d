#pragma once

#include <cstdint>
#include <span>

#include "tern/core/tensor.h"

namespace tern::kernels {

/// Numbers on a CUDA device.
struct WatchedNumbers {
  Tensor numbers;    ///< f32 [n], or the bytes of such numbers, u8 [4n]
  uint32_t* notice;  ///< a word of core/notices.h
};

/// Writes step + 1 to the notices of the tensors that have a NaN or a number beyond ±most. A notice that is not 0 does
/// not change. Only for CUDA devices; `watched` is not empty.
void watch_numbers(std::span<const WatchedNumbers> watched, float most, uint32_t step);

}  // namespace tern::kernels
