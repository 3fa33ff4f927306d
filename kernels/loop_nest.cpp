#include "tern/kernels/loop_nest.h"

namespace tern::kernels {

Strides strides_in(const Tensor& tensor, const Shape& shape) {
  Strides own{}, result{};
  if (tensor.format() == MemoryFormat::channels_last) {
    const Strides4 s = strides4(tensor);
    own = {s.n, s.c, s.h, s.w};
  } else {
    for (int d = 0; d < tensor.rank(); ++d) own[d] = tensor.shape().numel_from(d + 1);
  }
  for (int d = 1; d <= tensor.rank(); ++d)
    if (tensor.size(-d) != 1) result[shape.rank() - d] = own[tensor.rank() - d];
  return result;
}

std::array<int, Shape::kMaxRank> storage_order(const Tensor& tensor) {
  if (tensor.format() == MemoryFormat::channels_last) return {0, 2, 3, 1};
  return {0, 1, 2, 3, 4, 5};
}

}  // namespace tern::kernels
