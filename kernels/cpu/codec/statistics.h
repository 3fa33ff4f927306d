#pragma once

#include <cmath>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cpu/codec/loops.h"

namespace tern::cpu::codec {

/// The sums of one run: at most kStatisticsRun elements.
inline kernels::CodecSums run_sums(const float* x, int64_t count) {
  double largest[kLanes], sums[kLanes], squares[kLanes];
  const int64_t rows = count / kLanes;
  loops().statistics(x, rows, largest, sums, squares);
  for (int64_t i = rows * kLanes; i < count; ++i) {
    const double value = x[i];
    largest[i % kLanes] = std::max(largest[i % kLanes], std::abs(value));
    sums[i % kLanes] += value;
    squares[i % kLanes] += value * value;
  }
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) {
      largest[i] = std::max(largest[i], largest[i + half]);
      sums[i] += sums[i + half];
      squares[i] += squares[i + half];
    }
  return {largest[0], sums[0], squares[0]};
}

}  // namespace tern::cpu::codec
