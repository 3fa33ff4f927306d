#pragma once

#include "tern/kernels/cpu/simd/product.h"
#include "tern/kernels/cpu/simd/winograd_transforms.h"

namespace tern::cpu::simd {
namespace {

template <int kWidth, int kOutputs, int kTaps>
constexpr WinogradTransforms make_transforms() {
  return {.outputs = kOutputs,
          .taps = kTaps,
          .patch = to_points<kWidth, PatchTransform>,
          .filter = to_points<kWidth, FilterTransform<kTaps>>,
          .gradient = to_points<kWidth, FilterTransform<kOutputs>>,
          .output = from_points<kWidth, OutputTransform<kOutputs>>,
          .weights = from_points<kWidth, OutputTransform<kTaps>>};
}

template <int kWidth>
constexpr Kernels make_kernels() {
  return {.width = kWidth,
          .tail = kTailWidth<kWidth>,
          .multiply = multiply<kWidth>,
          .winograd_3x3 = make_transforms<kWidth, 4, 3>(),
          .winograd_5x5 = make_transforms<kWidth, 2, 5>()};
}

}  // namespace
}  // namespace tern::cpu::simd
