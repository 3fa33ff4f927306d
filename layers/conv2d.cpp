#include "tern/layers/conv2d.h"

#include "tern/core/error.h"

namespace tern {
namespace {

void check_groups(const char* layer, int64_t in, int64_t out, int64_t groups) {
  check(groups > 0 && in % groups == 0 && out % groups == 0, layer, ": ", in, " and ", out,
        " channels do not divide into ", groups, " groups");
}

Shape weight_shape(const Conv2d::Options& options) {
  check_groups("Conv2d", options.in, options.out, options.groups);
  check(!options.same || (options.stride == Extent2(1) && options.padding == Extent2(0)), "Conv2d: same with stride ",
        options.stride.h, "x", options.stride.w, " and padding ", options.padding.h, "x", options.padding.w,
        ", expected stride 1 and padding 0");
  return {options.out, options.in / options.groups, options.kernel.h, options.kernel.w};
}

Shape weight_shape(const ConvTranspose2d::Options& options) {
  check_groups("ConvTranspose2d", options.in, options.out, options.groups);
  return {options.in, options.out / options.groups, options.kernel.h, options.kernel.w};
}

template <class Options>
Initializer bias_initializer(const Options& options) {
  return options.bias_initializer ? options.bias_initializer : default_bias(weight_shape(options));
}

}  // namespace

Conv2d::Conv2d(const Options& options)
    : weight(add_parameter("weight", weight_shape(options), options.weight_initializer)),
      bias(options.bias ? &add_parameter("bias", {options.out}, bias_initializer(options)) : nullptr),
      geometry_{options.stride, options.padding, options.dilation, options.groups},
      same_(options.same),
      relu_(options.relu),
      spare_channels_(options.spare_channels) {}

Variable Conv2d::forward(const Variable& x) {
  const Fused fused{.relu = relu_, .w_as_x = weight.copy_for(x.value()), .spare_channels = spare_channels_};
  if (same_) return conv2d_same(x, weight.variable(), variable_of(bias), geometry_.dilation, geometry_.groups, fused);
  return conv2d(x, weight.variable(), variable_of(bias), geometry_, fused);
}

ConvTranspose2d::ConvTranspose2d(const Options& options)
    : weight(add_parameter("weight", weight_shape(options), options.weight_initializer)),
      bias(options.bias ? &add_parameter("bias", {options.out}, bias_initializer(options)) : nullptr),
      geometry_{options.stride, options.padding, options.dilation, options.groups},
      added_(options.added) {}

Variable ConvTranspose2d::forward(const Variable& x) {
  return conv_transpose2d(x, weight.variable(), variable_of(bias), geometry_, added_);
}

}  // namespace tern
