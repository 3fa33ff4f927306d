#include "tern/dist/codec/blocks.h"

namespace tern {
namespace {

int64_t largest_divisor(int64_t n, int64_t most) {
  int64_t divisor = std::min(n, most);
  while (divisor > 1 && n % divisor != 0) --divisor;
  return std::max<int64_t>(divisor, 1);
}

}  // namespace

BlockGrid::BlockGrid(const Shape& shape, int64_t side, int64_t run) {
  const int64_t n = shape.numel();
  if (n == 0) return;
  rows = shape.rank() < 2 ? 1 : shape[0];
  columns = n / rows;
  tile_rows = shape.rank() < 2 ? 1 : largest_divisor(rows, side);
  tile_columns = shape.rank() < 2 ? std::min(run, n) : largest_divisor(columns, side);
}

}  // namespace tern
