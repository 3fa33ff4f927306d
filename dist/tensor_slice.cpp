#include "tern/dist/tensor_slice.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/parallel.h"

namespace tern {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements a thread

/// Calls `copy(at, of, count)` for every run of elements: from `at` on in the whole, from `of` on in the slice.
template <class Copy>
void visit_runs(const Shape& whole, const TensorSlice& slice, const Copy& copy) {
  const Shape part = slice.shape_in(whole);
  if (part.numel() == 0) return;
  const int64_t row = whole.numel() / whole[0], part_row = part.numel() / part[0];
  const int64_t run = slice.columns ? slice.block * (row / whole[1]) : row;
  parallel_for(0, part[0], std::max<int64_t>(1, kGrain / part_row), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = row * (slice.rows ? (*slice.rows)[static_cast<size_t>(i)] : i);
      int64_t of = part_row * i;
      if (!slice.columns) {
        copy(at, of, run);
      } else {
        for (const int64_t column : *slice.columns) {
          copy(at + column * run, of, run);
          of += run;
        }
      }
    }
  });
}

void check_indices(const std::vector<int64_t>& indices, int64_t extent, const Shape& whole) {
  for (const int64_t index : indices)
    check(index >= 0 && index < extent, "slice of ", whole, ": index ", index, " of ", extent);
}

}  // namespace

Shape TensorSlice::shape_in(const Shape& whole) const {
  Shape shape = whole;
  if (rows) {
    check_indices(*rows, whole[0], whole);
    shape[0] = static_cast<int64_t>(rows->size());
  }
  if (columns) {
    check_indices(*columns, whole[1] / block, whole);
    shape[1] = static_cast<int64_t>(columns->size()) * block;
  }
  return shape;
}

Tensor take(const Tensor& x, const TensorSlice& slice) {
  Tensor y = Tensor::empty(slice.shape_in(x.shape()));
  const float* from = x.data<float>();
  float* to = y.data<float>();
  visit_runs(x.shape(), slice, [=](int64_t at, int64_t of, int64_t count) { std::copy_n(from + at, count, to + of); });
  return y;
}

void put(const Tensor& y, const TensorSlice& slice, const Tensor& x) {
  check(y.shape() == slice.shape_in(x.shape()), "put: y is ", y.shape(), ", the slice ", slice.shape_in(x.shape()));
  const float* from = y.data<float>();
  float* to = x.data<float>();
  visit_runs(x.shape(), slice, [=](int64_t at, int64_t of, int64_t count) { std::copy_n(from + of, count, to + at); });
}

}  // namespace tern
