#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

using Values = std::vector<double>;

/// A tensor of f64, which runs on the reference kernels.
inline Tensor f64(const Shape& shape, const Values& values) { return Tensor::from(shape, values); }
inline Tensor empty_f64(const Shape& shape) { return Tensor::empty(shape, {.dtype = DType::f64}); }
/// A vector of i64.
inline Tensor integers(const std::vector<int64_t>& numbers) { return Tensor::from({std::ssize(numbers)}, numbers); }

/// Expects these elements, in row-major order, within `tolerance`.
inline void expect_values(const Tensor& found, const Values& expected, double tolerance = 1e-12) {
  const auto values = found.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

}  // namespace tern
