#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// Some rows of a tensor (dimension 0), and of each some blocks of columns (dimension 1, with all dimensions behind
/// it), in the order listed; where a list is absent, all.
struct TensorSlice {
  std::optional<std::vector<int64_t>> rows, columns;
  int64_t block = 1;  ///< consecutive columns that one index names

  Shape shape_in(const Shape& whole) const;
};

/// A copy of the slice of x. f32, row-major, on the CPU.
Tensor take(const Tensor& x, const TensorSlice& slice);
/// The slice of x = y, whose shape is `slice.shape_in(x.shape())`; the rest of x stays.
void put(const Tensor& y, const TensorSlice& slice, const Tensor& x);

}  // namespace tern
