#include "tern/kernels/block_dct.h"

#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// Element (k, j) of the matrix, or of its transpose.
double element(const Tensor& matrix, int64_t k, int64_t j, bool transposed) {
  const int64_t n = matrix.size(0);
  return double{matrix.data<float>()[transposed ? j * n + k : k * n + j]};
}

void block_dct(const Tensor& x, const BlockCosines& cosines, const BlockDctOptions& options, Tensor& y) {
  check_block_dct(x, cosines, options, y);
  const BlockGrid grid(x.shape(), options.side, options.run);
  for (int64_t block = 0; block < grid.count(); ++block) {
    const int64_t rows = grid.tile_rows, width = grid.width(block);
    const Tensor& of_rows = width == grid.tile_columns ? cosines.of_rows : cosines.of_rest;
    visit_floating(x.dtype(), "block_dct", [&]<class T>(T) {
      std::vector<double> half(static_cast<size_t>(rows * width));  // with its rows transformed
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t l = 0; l < width; ++l)
          for (int64_t j = 0; j < width; ++j)
            half[static_cast<size_t>(i * width + l)] += element(of_rows, l, j, options.inverse) *
                                                        static_cast<double>(x.data<T>()[grid.at(block, i * width + j)]);
      for (int64_t k = 0; k < rows; ++k)
        for (int64_t l = 0; l < width; ++l) {
          double sum = 0;
          for (int64_t i = 0; i < rows; ++i)
            sum += element(cosines.of_columns, k, i, options.inverse) * half[static_cast<size_t>(i * width + l)];
          const double sign = (sum > 0 ? 1 : 0) - (sum < 0 ? 1 : 0);
          y.data<T>()[grid.at(block, k * width + l)] = static_cast<T>(options.sign ? sign : options.scale * sum);
        }
    });
  }
}

}  // namespace

void provide_block_dct() { kernels::block_dct.provide(Target::reference, block_dct); }

}  // namespace tern::reference
