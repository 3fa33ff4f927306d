#pragma once

#include <cstdint>

namespace tern::cuda {

/// One axis of a pooling: which elements a window covers, and which windows cover an element. Host and device
/// share it.
struct PoolAxis {
  int32_t window, stride, padding, input, output;

  constexpr int32_t first(int32_t i) const { return i * stride - padding; }  ///< may lie in the padding
  constexpr int32_t begin(int32_t i) const { return first(i) > 0 ? first(i) : 0; }
  constexpr int32_t end(int32_t i) const { return first(i) + window < input ? first(i) + window : input; }
  /// Elements that an average divides by: the padding counts where `counted`, never what ceil_mode adds beyond it.
  constexpr int32_t divisor(int32_t i, bool counted) const {
    const int32_t most = counted ? input + padding : input;
    return (first(i) + window < most ? first(i) + window : most) - (counted ? first(i) : begin(i));
  }
  constexpr int32_t first_window(int32_t h) const {
    return h + padding < window ? 0 : (h + padding - window) / stride + 1;
  }
  constexpr int32_t last_window(int32_t h) const {
    const int32_t last = (h + padding) / stride;
    return last < output ? last : output - 1;
  }
};

}  // namespace tern::cuda
