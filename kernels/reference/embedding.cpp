#include "tern/kernels/embedding.h"

#include <algorithm>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using kernels::Bags;

/// Calls visit(n, column, value) for every element, in order.
template <class Visit>
void for_each_of_bags(const Bags& bags, Visit visit) {
  const auto* index = bags.indices.data<int64_t>();
  const auto* offset = bags.offsets.defined() ? bags.offsets.data<int64_t>() : nullptr;
  const float* value = bags.values.defined() ? bags.values.data<float>() : nullptr;
  const auto begin = [&](int64_t n) { return offset != nullptr ? offset[n] : n; };
  for (int64_t n = 0; n < bags.rows(); ++n)
    for (int64_t e = begin(n); e < begin(n + 1); ++e) visit(n, index[e], value != nullptr ? value[e] : 1.0f);
}

/// to[i] = the sums, rounded to the dtype of `to`.
template <class T>
void round_to(const Tensor& sums, Tensor& to) {
  for (int64_t i = 0; i < to.numel(); ++i) to.data<T>()[i] = static_cast<T>(sums.data<wider_t<T>>()[i]);
}

void embedding_bag(const Tensor& weight, const Bags& bags, Tensor& y) {
  kernels::check_bag_elements(kernels::embedding_name(bags), bags, weight.size(0));
  visit_floating(weight.dtype(), "embedding_bag", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const int64_t features = weight.size(1);
    const Tensor sums = Tensor::zeros(y.shape(), {.dtype = parameter_dtype(y.dtype())});
    for_each_of_bags(bags, [&](int64_t n, int64_t column, float value) {
      for (int64_t f = 0; f < features; ++f)
        sums.data<Wide>()[n * features + f] += Wide(value) * Wide(weight.data<T>()[column * features + f]);
    });
    round_to<T>(sums, y);
  });
}

void embedding_bag_backward(const Tensor& dy, const Bags& bags, Tensor& dw) {
  kernels::check_bag_elements(kernels::embedding_name(bags), bags, dw.size(0));
  visit_floating(dy.dtype(), "embedding_bag_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const int64_t features = dw.size(1);
    const Tensor sums = Tensor::zeros(dw.shape(), {.dtype = parameter_dtype(dw.dtype())});
    for_each_of_bags(bags, [&](int64_t n, int64_t column, float value) {
      for (int64_t f = 0; f < features; ++f)
        sums.data<Wide>()[column * features + f] += Wide(value) * Wide(dy.data<T>()[n * features + f]);
    });
    round_to<T>(sums, dw);
  });
}

void put_rows(const Tensor& values, const Tensor& rows, Tensor& w) {
  kernels::check_bag_elements("put_rows", {.indices = rows, .offsets = {}, .values = {}}, w.size(0));
  visit_floating(w.dtype(), "put_rows", [&]<class T>(T) {
    const int64_t features = w.size(1);
    for (int64_t i = 0; i < rows.numel(); ++i)
      std::copy_n(values.data<T>() + i * features, features, w.data<T>() + rows.data<int64_t>()[i] * features);
  });
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::reference, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::reference, embedding_bag_backward);
  kernels::put_rows.provide(Target::reference, put_rows);
}

}  // namespace tern::reference
