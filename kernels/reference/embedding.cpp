#include "tern/kernels/embedding.h"

#include <algorithm>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

/// Calls visit(row, column, value) for every element of the sparse matrix, in order.
template <class T, class Visit>
void for_each_element(const Tensor& indices, const Tensor& offsets, const Tensor& values, Visit visit) {
  const int64_t* first = offsets.data<int64_t>();
  for (int64_t row = 0; row + 1 < offsets.numel(); ++row)
    for (int64_t e = first[row]; e < first[row + 1]; ++e)
      visit(row, indices.data<int64_t>()[e], values.defined() ? values.data<T>()[e] : T(1));
}

void embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                   Tensor& y) {
  kernels::check_sparse_rows("embedding_bag", indices, offsets, values, weight.shape(), weight.size(0));
  const int64_t features = weight.size(1);
  visit_floating(weight.dtype(), "embedding_bag", [&]<class T>(T) {
    std::ranges::fill(y.span<T>(), T(0));
    for_each_element<T>(indices, offsets, values, [&](int64_t row, int64_t column, T value) {
      for (int64_t j = 0; j < features; ++j)
        y.data<T>()[row * features + j] =
            static_cast<T>(y.data<T>()[row * features + j] + value * weight.data<T>()[column * features + j]);
    });
  });
}

void embedding_bag_backward(const Tensor& dy, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                            Tensor& dweight) {
  kernels::check_sparse_rows("embedding_bag_backward", indices, offsets, values, dy.shape(), dweight.size(0));
  const int64_t features = dweight.size(1);
  visit_floating(dweight.dtype(), "embedding_bag_backward", [&]<class T>(T) {
    std::ranges::fill(dweight.span<T>(), T(0));
    for_each_element<T>(indices, offsets, values, [&](int64_t row, int64_t column, T value) {
      for (int64_t j = 0; j < features; ++j)
        dweight.data<T>()[column * features + j] =
            static_cast<T>(dweight.data<T>()[column * features + j] + value * dy.data<T>()[row * features + j]);
    });
  });
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::reference, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::reference, embedding_bag_backward);
}

}  // namespace tern::reference
