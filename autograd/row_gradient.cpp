#include <algorithm>
#include <iterator>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/autograd/variable.h"
#include "tern/core/error.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/embedding.h"

namespace tern {

Tensor RowGradient::dense(const Shape& shape) const {
  Tensor whole = Tensor::empty(shape, values.options());
  kernels::embedding_bag_backward(values, {.indices = rows, .offsets = {}, .values = {}}, whole);
  return whole;
}

RowGradient operator+(const RowGradient& a, const RowGradient& b) {
  const auto first = a.rows.to_vector<int64_t>(), second = b.rows.to_vector<int64_t>();
  std::vector<int64_t> rows;
  std::ranges::set_union(first, second, std::back_inserter(rows));
  std::vector<int64_t> places;  // of a's rows and then of b's, so that a sum is a's value plus b's
  for (const auto* own : {&first, &second})
    for (const int64_t row : *own) places.push_back(std::ranges::lower_bound(rows, row) - rows.begin());
  const auto on_device = [&](const std::vector<int64_t>& numbers) {
    return Tensor::from<int64_t>({std::ssize(numbers)}, numbers).to(a.values.device());
  };
  const NoGradient no_gradient;
  const Tensor values = concat({a.values, b.values}, 0).value();
  Tensor sums = Tensor::empty({std::ssize(rows), values.size(1)}, values.options());
  kernels::embedding_bag_backward(values, {.indices = on_device(places), .offsets = {}, .values = {}}, sums);
  return {.rows = on_device(rows), .values = sums};
}

void GradientSlot::give_rows(const RowGradient& contribution) {
  given = true;
  if (narrow.defined()) whole_gradient(narrow.shape());
  if (gradient.defined()) {
    if (gradient.is_shared()) gradient = gradient.clone();
    kernels::accumulate(contribution.dense(gradient.shape()), gradient);
  } else {
    rows = rows.defined() ? rows + contribution : contribution;
  }
}

const Tensor& GradientSlot::whole_gradient(const Shape& shape) {
  if (rows.defined()) {
    gradient = rows.dense(shape);
    rows = {};
  }
  if (narrow.defined()) gradient = widened(std::exchange(narrow, {}));
  return gradient;
}

}  // namespace tern
