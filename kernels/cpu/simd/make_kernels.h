#pragma once

#include "tern/kernels/cpu/simd/product.h"
#include "tern/kernels/cpu/simd/winograd_transforms.h"

namespace tern::cpu::simd {

template <int kWidth, int kOutputs, int kTaps>
constexpr WinogradTransforms make_transforms() {
  return {.outputs = kOutputs,
          .taps = kTaps,
          .patch = to_points<kWidth, PatchTransform<kWidth>>,
          .filter = to_points<kWidth, FilterTransform<kWidth, kTaps>>,
          .gradient = to_points<kWidth, FilterTransform<kWidth, kOutputs>>,
          .output = from_points<kWidth, OutputTransform<kWidth, kOutputs>>,
          .weights = from_points<kWidth, OutputTransform<kWidth, kTaps>>};
}

template <int kWidth>
constexpr Kernels make_kernels() {
  return {.width = kWidth,
          .multiply = multiply<kWidth>,
          .winograd_3x3 = make_transforms<kWidth, 4, 3>(),
          .winograd_5x5 = make_transforms<kWidth, 2, 5>()};
}

}  // namespace tern::cpu::simd
