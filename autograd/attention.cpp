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

/// The dimensions of [..., L, D] before the last two.
Shape leading(const Variable& x) {
  const Shape& shape = x.shape();
  check(shape.rank() >= 2, "attention: shape ", shape, ", expected [..., L, D]");
  return Shape(std::span(shape.begin(), shape.end() - 2));
}

/// [..., L, D] as [B, L, D], repeated if its leading dimensions broadcast to `lead`.
Variable as_batch(const Variable& x, const Shape& lead) {
  const Shape last = {x.shape()[-2], x.shape()[-1]};
  std::vector<int64_t> extents(lead.begin(), lead.end());
  extents.insert(extents.end(), last.begin(), last.end());
  return reshape(leading(x) == lead ? x : expand(x, extents), Shape{lead.numel(), last[0], last[1]});
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v, const AttentionOptions& options) {
  const Shape lead = broadcast(broadcast(leading(q), leading(k), "attention"), leading(v), "attention");
  const auto width = static_cast<double>(std::max<int64_t>(1, q.shape()[-1]));
  const double scale = options.scale.value_or(1 / std::sqrt(width));
  const Variable y =
      apply(Attention{.options = {scale, options.causal}}, as_batch(q, lead), as_batch(k, lead), as_batch(v, lead));
  std::vector<int64_t> extents(lead.begin(), lead.end());
  extents.insert(extents.end(), {y.shape()[1], y.shape()[2]});
  return reshape(y, Shape(extents));
}

}  // namespace tern
