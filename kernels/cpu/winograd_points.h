#pragma once

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {

inline constexpr int64_t kWinogradPoints = 36;

/// F(4 x 4, 3 x 3) or F(2 x 2, 5 x 5) for this processor, by the extent of the kernel.
inline const simd::WinogradTransforms& winograd_transforms(int64_t taps) {
  return taps == 3 ? simd::kernels().winograd_3x3 : simd::kernels().winograd_5x5;
}

/// How 36 matrices [rows, columns], one per point, lie in scratch memory: rows are padded for whole vectors, and the
/// distances between rows and between matrices are such that neighbours fall in different sets of the cache.
class PointLayout {
 public:
  PointLayout(int64_t rows, int64_t columns)
      : row_(round_up(columns, 2 * simd::kernels().width) + kLine), point_(round_up(rows * row_, 2 * kLine) + kLine) {}

  int64_t row() const { return row_; }      ///< floats from one row to the next
  int64_t point() const { return point_; }  ///< floats from one matrix to the next
  int64_t numel() const { return kWinogradPoints * point_; }

  static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

 private:
  static constexpr int64_t kLine = 16;
  int64_t row_, point_;
};

}  // namespace tern::cpu
