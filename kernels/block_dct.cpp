#include "tern/kernels/block_dct.h"

#include <cmath>
#include <numbers>

namespace tern::kernels {

Tensor cosines(int64_t n) {
  const Tensor c = Tensor::empty({n, n});
  const auto count = static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t quarters = (2 * j + 1) * k % (4 * n);  // the angle is this times π / 2n
      const double cosine =
          quarters % (2 * n) == n ? 0 : std::cos(std::numbers::pi * static_cast<double>(quarters) / (2 * count));
      c.data<float>()[k * n + j] = static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / count) * cosine);
    }
  return c;
}

void check_block_dct(const Tensor& x, const BlockCosines& cosines, const BlockDctOptions& options, const Tensor& y) {
  const char* const operation = "block_dct";
  check_alike(operation, x, y);
  check(x.format() == MemoryFormat::row_major, operation, ": x is ", x.format(), ", expected row_major");
  check(options.side >= 1 && options.side <= kMostDctSide && options.run >= 1 && options.run <= kMostDctSide, operation,
        ": side is ", options.side, ", run ", options.run, ", expected 1 to ", kMostDctSide);
  check(!options.sign || (options.inverse && options.scale == 1), operation, ": sign with ",
        options.inverse ? "inverse" : "the transform", " and a scale of ", options.scale, ", expected inverse and 1");
  if (x.numel() == 0) return;
  const BlockGrid grid(x.shape(), options.side, options.run);
  const auto check_matrix = [&](const char* name, const Tensor& matrix, int64_t n) {
    check(matrix.defined() && matrix.dtype() == DType::f32 && matrix.shape() == Shape{n, n} &&
              matrix.device() == x.device(),
          operation, ": the matrix of ", name, " is ", matrix.defined() ? to_string(matrix.shape()) : "undefined",
          ", expected f32 ", Shape{n, n}, " on ", x.device());
  };
  check_matrix("columns", cosines.of_columns, grid.tile_rows);
  check_matrix("rows", cosines.of_rows, grid.tile_columns);
  if (rest_of(grid) > 0) check_matrix("the rest", cosines.of_rest, rest_of(grid));
}

}  // namespace tern::kernels
