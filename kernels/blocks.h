#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/shape.h"

namespace tern::kernels {

/// How a tensor is cut into blocks. A matrix [rows, columns], or filters as [out, in·kh·kw], is cut into tiles of
/// `tile_rows` × `tile_columns`: the largest divisors of each side that are at most `side`. A vector is cut into runs
/// of `run` elements, and its last run may be shorter. So each block has the same neighbours on all ranks.
struct BlockGrid {
  int64_t rows = 0, columns = 0;
  int64_t tile_rows = 1, tile_columns = 1;

  BlockGrid() = default;
  BlockGrid(const Shape& shape, int64_t side, int64_t run) {
    if (shape.numel() == 0) return;
    const bool is_matrix = shape.rank() >= 2;
    rows = is_matrix ? shape[0] : 1;
    columns = shape.numel() / rows;
    tile_rows = is_matrix ? largest_divisor(rows, side) : 1;
    tile_columns = is_matrix ? largest_divisor(columns, side) : std::min(run, columns);
  }

  constexpr int64_t count() const { return across() == 0 ? 0 : rows / tile_rows * across(); }
  constexpr int64_t elements(int64_t block) const { return tile_rows * width(block); }
  /// The length of a block's rows. Their elements are neighbours in the tensor.
  constexpr int64_t width(int64_t block) const {
    return std::min(tile_columns, columns - block % across() * tile_columns);
  }
  /// The tensor's element that is element `i` of a block, which is row-major.
  constexpr int64_t at(int64_t block, int64_t i) const {
    const int64_t w = width(block);
    return (block / across() * tile_rows + i / w) * columns + block % across() * tile_columns + i % w;
  }

 private:
  static int64_t largest_divisor(int64_t n, int64_t most) {
    int64_t divisor = std::min(n, most);
    while (n % divisor != 0) --divisor;
    return divisor;
  }
  constexpr int64_t across() const { return columns == 0 ? 0 : (columns + tile_columns - 1) / tile_columns; }
};

}  // namespace tern::kernels
