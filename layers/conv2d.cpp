#include "tern/layers/conv2d.h"

#include "tern/core/error.h"

namespace tern {
namespace {

Shape weight_shape(const Conv2d::Options& options) {
  check(options.groups > 0 && options.in % options.groups == 0 && options.out % options.groups == 0,
        "Conv2d: ", options.in, " and ", options.out, " channels do not divide into ", options.groups, " groups");
  return {options.out, options.in / options.groups, options.kernel.h, options.kernel.w};
}

}  // namespace

Conv2d::Conv2d(const Options& options)
    : weight(add_parameter("weight", weight_shape(options), options.weight_initializer)),
      bias(options.bias ? &add_parameter(
                              "bias", {options.out},
                              options.bias_initializer ? options.bias_initializer : default_bias(weight_shape(options)))
                        : nullptr),
      geometry_{options.stride, options.padding, options.dilation, options.groups},
      relu_(options.relu) {}

Variable Conv2d::forward(const Variable& x) {
  return conv2d(x, weight.variable(), bias ? bias->variable() : Variable(), geometry_, {.relu = relu_});
}

}  // namespace tern
