#include "tern/layers/attention.h"

#include "tern/core/error.h"
#include "tern/layers/initialize.h"

namespace tern {

MultiHeadAttention::MultiHeadAttention(const Options& options)
    : heads_(options.heads),
      causal_(options.causal),
      in_weight_(add_parameter("in_proj_weight", {3 * options.features, options.features}, xavier_uniform())),
      in_bias_(options.bias ? &add_parameter("in_proj_bias", {3 * options.features}, constant(0)) : nullptr),
      out_(add<Linear>(
          "out_proj",
          {.in = options.features, .out = options.features, .bias = options.bias, .bias_initializer = constant(0)})) {
  check(heads_ >= 1 && options.features % heads_ == 0, "MultiHeadAttention: ", options.features,
        " features do not divide into ", heads_, " heads");
}

Variable MultiHeadAttention::forward(const Variable& x) {
  const Shape& shape = x.shape();
  const int64_t features = in_weight_.value().size(1);
  check(shape.rank() == 3 && shape[2] == features, "MultiHeadAttention: input of shape ", shape, ", expected [N, T, ",
        features, "]");
  const int64_t batch = shape[0], steps = shape[1], depth = shape[2] / heads_;
  const Variable all = linear(x, in_weight_.variable(), variable_of(in_bias_));
  const Variable by_head = permute(reshape(all, Shape{batch, steps, 3, heads_, depth}), {2, 0, 3, 1, 4});
  const std::vector<Variable> parts = split(by_head, {1, 1, 1}, 0);
  const Shape heads{batch, heads_, steps, depth};
  const Variable y =
      attention(reshape(parts[0], heads), reshape(parts[1], heads), reshape(parts[2], heads), {.causal = causal_});
  return out_(reshape(permute(y, {0, 2, 1, 3}), shape));
}

}  // namespace tern
