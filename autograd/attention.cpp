#include "tern/kernels/attention.h"

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"

namespace tern {
namespace {

struct Attention {
  kernels::AttentionOptions options;
  Saved q = {}, k = {}, v = {}, y = {}, log_sums = {};

  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values) {
    const Shape shape = kernels::attention_output_shape(queries, keys, values);
    const Device device = queries.device();
    Tensor result = Tensor::empty(shape, {queries.dtype(), device});
    Tensor sums = Tensor::empty({shape[0], shape[1]}, {parameter_dtype(queries.dtype()), device});
    kernels::attention(queries, keys, values, options, result, sums);
    q = queries;
    k = keys;
    v = values;
    y = result;
    log_sums = sums;
    return result;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dq = q.empty_like(), dk = k.empty_like(), dv = v.empty_like();
    kernels::attention_backward(dy, {q, k, v, y, log_sums}, options, dq, dk, dv);
    return {dq, dk, dv};
  }
};

/// [..., L, D] as [B, L, D].
Variable as_batch(const Variable& x) {
  const Shape& shape = x.shape();
  check(shape.rank() >= 2, "attention: shape ", shape, ", expected [..., L, D]");
  const Shape leading(std::span(shape.begin(), shape.end() - 2));
  return reshape(x, Shape{leading.numel(), shape[-2], shape[-1]});
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v, const AttentionOptions& options) {
  const Shape& shape = q.shape();
  const bool alike = shape.rank() == k.shape().rank() && shape.rank() == v.shape().rank() &&
                     std::equal(shape.begin(), shape.end() - std::min(2, shape.rank()), k.shape().begin()) &&
                     std::equal(shape.begin(), shape.end() - std::min(2, shape.rank()), v.shape().begin());
  check(alike, "attention: queries ", shape, ", keys ", k.shape(), ", values ", v.shape(),
        ", expected equal leading dimensions");
  const Variable queries = as_batch(q);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, shape[-1]))));
  const Variable y = apply(Attention{.options = {scale, options.causal}}, queries, as_batch(k), as_batch(v));
  Shape result = shape;
  result[-1] = y.shape()[2];
  return reshape(y, result);
}

}  // namespace tern
