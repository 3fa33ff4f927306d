#pragma once

#include <span>
#include <vector>

#include "tern/autograd/variable.h"

namespace tern {

/// `x` itself where it already lies in `format`; else a copy that does.
Tensor in_format(Tensor x, MemoryFormat format);

/// The same elements in row-major order under another shape; one extent may be -1.
Variable reshape(const Variable& x, std::initializer_list<int64_t> extents);
/// [N, C·H·W] from [N, C, H, W], in the order C, H, W whatever the format; any rank from 1 on.
Variable flatten(const Variable& x);
/// Two dimensions exchanged; row-major.
Variable transpose(const Variable& x, int first, int second);
/// `inputs` one after another along `dimension`; every other extent agrees. In the format of the first.
Variable concat(std::span<const Variable> inputs, int dimension);
Variable concat(std::initializer_list<Variable> inputs, int dimension);
/// Indices [begin, end) along `dimension`.
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end);

/// Elements added before and after one dimension.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x surrounded by `value`; one entry per dimension of x.
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value = 0);

/// x with elements of another floating dtype.
Variable convert(const Variable& x, DType dtype);

}  // namespace tern
