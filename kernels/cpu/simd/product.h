#pragma once

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/simd/vector.h"

namespace tern::cpu::simd {
namespace {

/// The most rows of C, `kVectors` wide, that fit 16 or (AVX-512) 32 registers beside a row of B.
template <int kWidth, int kVectors>
constexpr int kMaxRows = (kWidth == 16 ? 24 : 12) / kVectors;

/// kRows rows and kVectors vectors of C, held in registers over the whole depth. kUnitDepth: a_depth is 1, else a_row
/// is.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
inline void accumulate_tile(const Product& p, const float* a, const float* b, Vector<kWidth> (&sum)[kRows][kVectors]) {
  const int64_t a_row = kUnitDepth ? p.a_row : 1, a_depth = kUnitDepth ? 1 : p.a_depth;
  const int64_t b_row = p.b_row;
  for (int64_t s = 0; s < p.segments; ++s) {
    const float* from = a + (p.a_offsets ? p.a_offsets[s] : 0);
#pragma GCC unroll 2
    for (int64_t d = p.depth; d > 0; --d) {
      Vector<kWidth> row[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) row[v] = load<kWidth>(b + v * kWidth);
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        const float scale = from[r * a_row];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] += scale * row[v];
      }
      from += a_depth;
      b += b_row;
    }
  }
}

/// The elements of a tile that lie inside C, with bias and relu; `columns` of them in each row.
template <int kWidth, int kRows, int kVectors>
inline void store_tile(const Product& p, const Vector<kWidth> (&sum)[kRows][kVectors], const float* bias, float* c,
                       int64_t columns) {
  if (columns == kVectors * kWidth) {
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        float* target = c + r * p.c_row + v * kWidth;
        Vector<kWidth> value = sum[r][v];
        if (p.accumulate) value += load<kWidth>(target);
        if (bias) value += load<kWidth>(bias + v * kWidth);
        if (p.relu) value = value < 0.0f ? Vector<kWidth>{} : value;
        store<kWidth>(target, value);
      }
    }
    return;
  }
  // Sums are addressed by constants alone, here too, since otherwise they would live in memory.
  float rest[kRows][kVectors * kWidth];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store<kWidth>(rest[r] + v * kWidth, sum[r][v]);
  }
#pragma GCC unroll 1
  for (int r = 0; r < kRows; ++r) {
    float* target = c + r * p.c_row;
    for (int64_t k = 0; k < columns; ++k) {
      float value = rest[r][k] + (p.accumulate ? target[k] : 0.0f) + (bias ? bias[k] : 0.0f);
      target[k] = p.relu && value < 0.0f ? 0.0f : value;
    }
  }
}

/// `tiles` tiles below each other.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
void multiply_tiles(const Product& p, int64_t tiles, const float* a, const float* b, const float* bias, float* c,
                    int64_t columns) {
  for (; tiles > 0; --tiles) {
    Vector<kWidth> sum[kRows][kVectors];
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Vector<kWidth>{};
    }
    accumulate_tile<kWidth, kRows, kVectors, kUnitDepth>(p, a, b, sum);
    store_tile<kWidth, kRows, kVectors>(p, sum, bias, c, columns);
    a += kRows * p.a_row;
    c += kRows * p.c_row;
  }
}

/// `multiply_tiles` for a height known at run time, at most kRows.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
void multiply_height(const Product& p, int64_t height, int64_t tiles, const float* a, const float* b, const float* bias,
                     float* c, int64_t columns) {
  if constexpr (kRows > 1) {
    if (height < kRows)
      return multiply_height<kWidth, kRows - 1, kVectors, kUnitDepth>(p, height, tiles, a, b, bias, c, columns);
  }
  multiply_tiles<kWidth, kRows, kVectors, kUnitDepth>(p, tiles, a, b, bias, c, columns);
}

/// One panel of C, kVectors wide; `columns` of it inside C.
template <int kWidth, int kVectors, bool kUnitDepth>
void multiply_panel(const Product& p, const float* b, const float* bias, float* c, int64_t columns) {
  constexpr int kMax = kMaxRows<kWidth, kVectors>;
  // Heights that differ by one at most: a last tile of one or two rows would leave the multipliers waiting.
  const int64_t tiles = (p.rows + kMax - 1) / kMax;
  const int64_t height = p.rows / tiles, higher = p.rows % tiles, row = higher * (height + 1);
  if (higher > 0) multiply_height<kWidth, kMax, kVectors, kUnitDepth>(p, height + 1, higher, p.a, b, bias, c, columns);
  multiply_height<kWidth, kMax, kVectors, kUnitDepth>(p, height, tiles - higher, p.a + row * p.a_row, b, bias,
                                                      c + row * p.c_row, columns);
}

template <int kWidth, bool kUnitDepth>
void multiply_panels(const Product& p) {
  constexpr int64_t kPanel = 2 * kWidth;
  constexpr int kTail = kTailWidth<kWidth>;
  for (int64_t first = 0; first < p.columns; first += kPanel) {
    const float* b = p.b + first / kPanel * p.b_panel;
    const float* bias = p.bias ? p.bias + first : nullptr;
    float* c = p.c + first;
    int64_t columns = p.columns - first < kPanel ? p.columns - first : kPanel;
    if (columns > kWidth + (kTail < kWidth ? kTail : 0)) {
      multiply_panel<kWidth, 2, kUnitDepth>(p, b, bias, c, columns);
      continue;
    }
    if (columns > kTail) {
      const int64_t whole = columns < kWidth ? columns : kWidth;
      multiply_panel<kWidth, 1, kUnitDepth>(p, b, bias, c, whole);
      columns -= whole;
      b += whole;
      c += whole;
      if (bias) bias += whole;
    }
    if (columns > 0) multiply_panel<kTail, 1, kUnitDepth>(p, b, bias, c, columns);
  }
}

template <int kWidth>
void multiply(const Product& p) {
  if (p.a_depth == 1)
    multiply_panels<kWidth, true>(p);
  else
    multiply_panels<kWidth, false>(p);
}

}  // namespace
}  // namespace tern::cpu::simd
