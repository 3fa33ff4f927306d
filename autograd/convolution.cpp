#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/convolution.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/reduction.h"

namespace tern {
namespace {

/// The weight in the form that conv2d reads without a copy. Forward and backward share it.
Tensor weight_beside(const Tensor& x, const Tensor& weight) {
  if (x.device().type == DeviceType::cpu) return in_format(weight, MemoryFormat::row_major);
  if (weight.dtype() == x.dtype()) return in_format(weight, x.format());
  Tensor w = Tensor::empty(weight.shape(), x.options());
  kernels::convert(weight, w);
  return w;
}

/// An uninitialised gradient of a weight that `weight_beside` brought into the form of w, beside x with this number of
/// channels. A GPU writes it in w's format, and so in the parameter's, and in w's dtype, as cuDNN does. If x has spare
/// channels, the launch that drops theirs also widens it.
Tensor weight_gradient(const Saved& w, int64_t channels, int64_t groups) {
  TensorOptions options = w.options();
  if (channels != w.size(1) * groups) options.dtype = parameter_dtype(options.dtype);
  return Tensor::empty(w.shape(), options);
}

/// The options of the convolution of x. The kernels of the CPU write channels-last.
TensorOptions result_options(const Tensor& x) {
  TensorOptions options = x.options();
  if (options.device.type == DeviceType::cpu) options.format = MemoryFormat::channels_last;
  return options;
}

struct Conv2dOperation {
  ConvGeometry geometry;
  Fused fused;
  Saved x, w, y;

  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    check(is_floating(input.dtype()), "conv2d: input is ", input.dtype(), ", expected a floating-point type");
    const Shape shape = kernels::conv2d_output_shape(without_spare(input, weight), weight.shape(), geometry);
    check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "conv2d: bias of shape ", bias.shape(),
          ", weight of shape ", weight.shape(), ", expected [O] and [O, C/groups, kh, kw]");
    check(weight.dtype() == parameter_dtype(input.dtype()), "conv2d: weight is ", weight.dtype(), " beside input of ",
          input.dtype(), ", expected ", parameter_dtype(input.dtype()));
    x = input;
    w = fused.w_as_x.defined() ? fused.w_as_x : weight_beside(input, weight);
    Tensor result = Tensor::empty(shape, result_options(input));
    kernels::conv2d(x, w, bias, geometry, fused.relu, result);
    if (fused.relu) y = result;
    return result;
  }
  /// The kernels of a GPU add as they write.
  bool adds_to_first() const { return x.options().device.type != DeviceType::cpu; }
  Gradients backward(Tensor dy, const Needs& needs, Tensor sum) const {
    Gradients gradients(3);
    const TensorOptions options{.dtype = parameter_dtype(x.dtype()), .device = x.options().device};
    if (needs[2]) gradients[2] = Tensor::empty({w.size(0)}, options);
    Tensor db = gradients[2];
    const Tensor masked = fused.relu ? through_relu(std::move(dy), db) : dy;
    if (needs[0]) {
      const auto& backward_data = sum.defined() ? kernels::conv2d_backward_data_add : kernels::conv2d_backward_data;
      gradients[0] = sum.defined() ? in_format(std::move(sum), x.options().format) : x.empty_like();
      backward_data(masked, w, geometry, gradients[0]);
    }
    if (needs[1] || needs[2]) {
      gradients[1] = weight_gradient(w, x.size(1), geometry.groups);
      kernels::conv2d_backward_weights(masked, x, geometry, gradients[1], db);
    }
    return gradients;
  }

  /// The shape of x without its spare channels.
  Shape without_spare(const Tensor& input, const Tensor& weight) const {
    Shape shape = input.shape();
    if (fused.spare_channels && input.device().type != DeviceType::cpu && geometry.groups == 1)
      shape[1] = std::min(shape[1], weight.size(1));
    return shape;
  }

  /// The gradient before the relu. A GPU makes `db` in the same pass, and then leaves it undefined.
  Tensor through_relu(Tensor dy, Tensor& db) const {
    if (!db.defined() || db.device().type == DeviceType::cpu) return relu_gradient(y, std::move(dy));
    Tensor dx = dy.is_shared() ? y.empty_like() : dy;
    kernels::relu_backward_sums(y, dy, dx, db);
    db = {};
    return dx;
  }
};

/// x + bias, with the bias of each channel rounded to the dtype of x. Its gradient is summed in its own dtype.
struct ChannelBias {
  Shape bias_shape = {};
  DType bias_dtype = {};

  static std::string name() { return "conv_transpose2d"; }
  Tensor forward(const Tensor& x, const Tensor& bias) {
    bias_shape = bias.shape();
    bias_dtype = bias.dtype();
    Tensor rounded = Tensor::empty(bias_shape, {x.dtype(), x.device()}), y = Tensor::empty_like(x);
    kernels::convert(bias, rounded);
    kernels::add(x, rounded.reshape(across()), y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    Gradients gradients(2);
    if (needs[0]) gradients[0] = dy;
    if (needs[1]) {
      const Tensor wide = dy.dtype() == bias_dtype ? dy : widened(dy);
      gradients[1] = sum_to(wide, across()).reshape(bias_shape).to(bias_dtype);
    }
    return gradients;
  }

  Shape across() const { return {1, bias_shape[0], 1, 1}; }
};

/// The gradient of a convolution by its input, as an operation of its own. The forward of that convolution is then the
/// backward of this operation.
struct ConvTranspose2d {
  ConvGeometry geometry;
  Extent2 added;
  Saved x, w;

  static std::string name() { return "conv_transpose2d"; }
  Tensor forward(const Tensor& input, const Tensor& weight) {
    const Shape shape = output_shape(input.shape(), weight.shape());
    check(weight.dtype() == parameter_dtype(input.dtype()), "conv_transpose2d: weight is ", weight.dtype(),
          " beside input of ", input.dtype(), ", expected ", parameter_dtype(input.dtype()));
    x = input;
    w = weight_beside(input, weight);
    Tensor y = Tensor::empty(shape, result_options(input));
    kernels::conv2d_backward_data(x, w, geometry, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    Gradients gradients(2);
    if (needs[0]) {
      gradients[0] = x.empty_like();
      kernels::conv2d(in_format(dy, result_options(x).format), w, {}, geometry, false, gradients[0]);
    }
    if (needs[1]) {
      Tensor none;
      gradients[1] = weight_gradient(w, dy.size(1), geometry.groups);
      kernels::conv2d_backward_weights(x, in_format(dy, result_options(x).format), geometry, gradients[1], none);
    }
    return gradients;
  }

  Shape output_shape(const Shape& x_shape, const Shape& w_shape) const {
    const auto extent = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           int64_t more) {
      return (in - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + more;
    };
    const auto& [stride, padding, dilation, groups] = geometry;
    const int64_t h = extent(x_shape[2], w_shape[2], stride.h, padding.h, dilation.h, added.h),
                  width = extent(x_shape[3], w_shape[3], stride.w, padding.w, dilation.w, added.w);
    check(h >= 1 && width >= 1, "conv_transpose2d: input ", x_shape, " and weight ", w_shape, " give ", h, " rows and ",
          width, " columns, expected 1 or more");
    return {x_shape[0], w_shape[1] * groups, h, width};
  }
};

}  // namespace

Variable conv2d_same(const Variable& x, const Variable& w, const Variable& bias, const Extent2& dilation,
                     int64_t groups, const Fused& fused) {
  const Shape& kernel = w.shape();
  check(kernel.rank() == 4, "conv2d_same: weight ", kernel, ", expected 4 dimensions");
  kernels::check_conv_geometry("conv2d_same", kernel, {.dilation = dilation, .groups = groups});
  const Extent2 total{dilation.h * (kernel[2] - 1), dilation.w * (kernel[3] - 1)};
  if (total.h % 2 == 0 && total.w % 2 == 0)
    return conv2d(x, w, bias, {.padding = {total.h / 2, total.w / 2}, .dilation = dilation, .groups = groups}, fused);
  std::vector<Padding> around(static_cast<size_t>(x.shape().rank()));
  check(around.size() >= 2, "conv2d_same: input ", x.shape(), ", expected [N, C, H, W] or [C, H, W]");
  around[around.size() - 2] = {total.h / 2, total.h - total.h / 2};
  around[around.size() - 1] = {total.w / 2, total.w - total.w / 2};
  return conv2d(pad(x, around), w, bias, {.dilation = dilation, .groups = groups}, fused);
}

namespace {

/// conv_transpose2d of a batch without a bias.
Variable transposed(const Variable& x, const Variable& w, const ConvGeometry& geometry, const Extent2& added) {
  const auto& [stride, padding, dilation, groups] = geometry;
  const Shape &image = x.shape(), &weight = w.shape();
  check(image.rank() == 4 && weight.rank() == 4 && image[1] == weight[0] && weight[2] >= 1 && weight[3] >= 1,
        "conv_transpose2d: input ", image, " and weight ", weight, ", expected [N, C, H, W] and [C, O/groups, kh, kw]");
  kernels::check_conv_geometry("conv_transpose2d", weight, geometry);
  const Extent2 below = {std::max(stride.h, dilation.h), std::max(stride.w, dilation.w)};
  check(added.h >= 0 && added.w >= 0 && added.h < below.h && added.w < below.w, "conv_transpose2d: ", added.h,
        " rows and ", added.w, " columns are added, expected 0 or more, and fewer than the stride or the dilation");
  if (added.h < stride.h && added.w < stride.w)
    return apply(ConvTranspose2d{.geometry = geometry, .added = added, .x = {}, .w = {}}, x, w);
  // conv2d maps so large a result to more than x. So cut it out of the result without padding, and of zeros after it.
  const Variable whole =
      transposed(x, w, {.stride = stride, .padding = 0, .dilation = dilation, .groups = groups}, Extent2(0));
  const int64_t h = whole.shape()[2] - 2 * padding.h + added.h, width = whole.shape()[3] - 2 * padding.w + added.w;
  check(h >= 1 && width >= 1, "conv_transpose2d: input ", image, " and weight ", weight, " give ", h, " rows and ",
        width, " columns, expected 1 or more");
  const Variable longer = pad(whole, {{}, {}, {0, added.h}, {0, added.w}});
  return slice(slice(longer, 2, padding.h, padding.h + h), 3, padding.w, padding.w + width);
}

}  // namespace

Variable conv_transpose2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry,
                          const Extent2& added) {
  if (x.shape().rank() == 3) return squeeze(conv_transpose2d(unsqueeze(x, 0), w, bias, geometry, added), 0);
  const Variable y = transposed(x, w, geometry, added);
  if (!bias.value().defined()) return y;
  check(bias.shape() == Shape{y.shape()[1]}, "conv_transpose2d: bias of shape ", bias.shape(), ", expected [",
        y.shape()[1], "]");
  return apply(ChannelBias(), y, bias);
}

Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry,
                const Fused& fused) {
  return with_a_batch(x, [&](const Variable& images) {
    return apply(Conv2dOperation{.geometry = geometry, .fused = fused, .x = {}, .w = {}, .y = {}}, images, w, bias);
  });
}

}  // namespace tern
