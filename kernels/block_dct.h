#pragma once

#include "tern/kernels/blocks.h"
#include "tern/kernels/kernel.h"

// The DCT-II of each block of a tensor (BlockGrid), as DeMo uses it (Peng et al., arXiv 2411.19870): a tile X becomes
// C X Dᵀ, and a run x becomes x Dᵀ. C and D are orthonormal matrices of the tile's sides: see `cosines`. The inverse is
// Cᵀ X D.

namespace tern::kernels {

inline constexpr int64_t kMostDctSide = 64;

struct BlockDctOptions {
  int64_t side = kMostDctSide, run = kMostDctSide;  ///< of the BlockGrid; 1 to 64
  bool inverse = false;
  double scale = 1;   ///< of the result
  bool sign = false;  ///< y is the sign of each element: 1, -1, or 0 for 0 and NaN; with inverse, and a scale of 1
};

/// The matrices of a tensor's blocks, on its device. `of_rest` is undefined unless a vector has a shorter last run.
struct BlockCosines {
  Tensor of_columns;  ///< C [tile rows, tile rows]
  Tensor of_rows;     ///< D [tile columns, tile columns]
  Tensor of_rest;     ///< D of the last run
};

/// The matrix of the DCT-II: f32 [n, n], √((k = 0 ? 1 : 2) / n) cos(π (2j + 1) k / 2n) in row k and column j, and
/// exactly 0 if the cosine is 0.
Tensor cosines(int64_t n);
/// Elements of the last run of a vector, if it is shorter than the others; otherwise 0.
constexpr int64_t rest_of(const BlockGrid& grid) {
  return grid.tile_columns == 0 ? 0 : grid.columns % grid.tile_columns;
}

/// y = the transform of each block of x. Both are row-major, of one shape, and y may be x. The inverse is faster if
/// most elements are 0.
inline constinit Kernel<void(const Tensor& x, const BlockCosines&, const BlockDctOptions&, Tensor& y)> block_dct{
    "block_dct"};

/// Throws an error that names the operation if the arguments do not fit each other.
void check_block_dct(const Tensor& x, const BlockCosines& cosines, const BlockDctOptions& options, const Tensor& y);

}  // namespace tern::kernels
