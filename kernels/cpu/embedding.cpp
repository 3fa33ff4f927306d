#include "tern/kernels/embedding.h"

#include <algorithm>

#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// The arrays of a sparse matrix in compressed sparse rows.
struct SparseArrays {
  SparseArrays(const Tensor& indices, const Tensor& offsets, const Tensor& values)
      : index(indices.data<int64_t>()),
        first(offsets.data<int64_t>()),
        value(values.defined() ? values.data<float>() : nullptr) {}

  float at(int64_t element) const { return value ? value[element] : 1.0f; }

  const int64_t *index, *first;
  const float* value;  ///< null if all are 1
};

void embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                   Tensor& y) {
  kernels::check_sparse_rows("embedding_bag", indices, offsets, values, weight.shape(), weight.size(0));
  const int64_t features = weight.size(1), rows = y.size(0);
  const SparseArrays sparse(indices, offsets, values);
  const float* from = weight.data<float>();
  float* to = y.data<float>();
  const int64_t work = std::max<int64_t>(1, features * indices.numel() / std::max<int64_t>(1, rows));
  parallel_vectorized(rows, std::max<int64_t>(1, kGrain / work), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = to + row * features;
      std::fill_n(sum, features, 0.0f);
      for (int64_t e = sparse.first[row]; e < sparse.first[row + 1]; ++e) {
        const float* add = from + sparse.index[e] * features;
        const float factor = sparse.at(e);
#pragma omp simd
        for (int64_t j = 0; j < features; ++j) sum[j] += factor * add[j];
      }
    }
  });
}

/// Each thread has a range of the features and adds all elements to it in order.
void embedding_bag_backward(const Tensor& dy, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                            Tensor& dweight) {
  kernels::check_sparse_rows("embedding_bag_backward", indices, offsets, values, dy.shape(), dweight.size(0));
  constexpr int64_t kLeastFeatures = 16;  // a cache line
  const int64_t features = dweight.size(1), columns = dweight.size(0), rows = dy.size(0);
  const SparseArrays sparse(indices, offsets, values);
  const float* from = dy.data<float>();
  float* to = dweight.data<float>();
  parallel_vectorized(features, kLeastFeatures, [=](int64_t begin, int64_t end) {
    for (int64_t column = 0; column < columns; ++column)
      std::fill(to + column * features + begin, to + column * features + end, 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t e = sparse.first[row]; e < sparse.first[row + 1]; ++e) {
        float* sum = to + sparse.index[e] * features;
        const float* add = from + row * features;
        const float factor = sparse.at(e);
#pragma omp simd
        for (int64_t j = begin; j < end; ++j) sum[j] += factor * add[j];
      }
  });
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::cpu, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::cpu, embedding_bag_backward);
}

}  // namespace tern::cpu
