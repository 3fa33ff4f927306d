#include "tern/layers/linear.h"

#include "tern/autograd/functional.h"

namespace tern {

Linear::Linear(const Options& options)
    : weight(add_parameter("weight", {options.out, options.in}, options.weight_initializer)),
      bias(options.bias ? &add_parameter("bias", {options.out},
                                         options.bias_initializer ? options.bias_initializer
                                                                  : default_bias({options.out, options.in}))
                        : nullptr),
      relu_(options.relu) {}

Variable Linear::forward(const Variable& x) {
  if (!sum_)
    return linear(x, weight.variable(), variable_of(bias), {.relu = relu_, .w_as_x = weight.copy_for(x.value())});
  const NoGradient no_gradient;
  Variable y = linear(x, weight.variable(), {});
  sum_(y.value());
  if (bias != nullptr) y = y + convert(bias->variable(), y.value().dtype());
  return relu_ ? relu(y) : y;
}

}  // namespace tern
