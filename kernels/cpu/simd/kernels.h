#pragma once

#include <cstdint>

namespace tern::cpu::simd {

/// C [rows, columns] = Σ_s A_s [rows, depth] · B_s [depth, columns], by one thread; the inner loop of every
/// convolution. A_s begins at a + a_offsets[s]. B is cut into panels of 2·width columns; within a panel the rows of
/// B_0, B_1, ... follow each other, `b_row` floats apart. Every panel is readable up to a multiple of `width` columns.
struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_depth = 1;  ///< floats from one row to the next, and along the depth; one of them is 1
  const int64_t* a_offsets = nullptr;
  int64_t segments = 1;
  const float* b = nullptr;
  int64_t b_row = 0, b_panel = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;      ///< add to C
  const float* bias = nullptr;  ///< [columns], or null
  bool relu = false;            ///< max(·, 0) last
};

/// The loops of one instruction set.
struct Kernels {
  int64_t width;  ///< floats in a vector
  void (*multiply)(const Product&);
};

/// Those for this processor.
const Kernels& kernels();

extern const Kernels baseline_kernels, avx2_kernels, avx512_kernels;

}  // namespace tern::cpu::simd
