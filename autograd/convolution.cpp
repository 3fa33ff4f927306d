#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

/// The weight in the form that conv2d reads without a copy. Forward and backward share it.
Tensor weight_beside(const Tensor& x, const Tensor& weight) {
  if (x.device().type == DeviceType::cpu) return in_format(weight, MemoryFormat::row_major);
  if (weight.dtype() == x.dtype() && weight.format() == x.format()) return weight;
  Tensor w = Tensor::empty(weight.shape(), x.options());
  kernels::convert(weight, w);
  return w;
}

struct Conv2dOperation {
  ConvGeometry geometry;
  bool relu;
  Saved x, w, y;

  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    const Shape shape = kernels::conv2d_output_shape(input.shape(), weight.shape(), geometry);
    check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "conv2d: bias of shape ", bias.shape(),
          ", weight of shape ", weight.shape(), ", expected [O] and [O, C/groups, kh, kw]");
    check(weight.dtype() == parameter_dtype(input.dtype()), "conv2d: weight is ", weight.dtype(), " beside input of ",
          input.dtype(), ", expected ", parameter_dtype(input.dtype()));
    x = input;
    w = weight_beside(input, weight);
    Tensor result = Tensor::empty(shape, input.options());
    kernels::conv2d(x, w, bias, geometry, relu, result);
    if (relu) y = result;
    return result;
  }
  Gradients backward(Tensor dy, const Needs& needs) const {
    const Tensor masked = relu ? relu_gradient(y, std::move(dy)) : dy;
    Gradients gradients(3);
    if (needs[0]) {
      gradients[0] = x.empty_like();
      kernels::conv2d_backward_data(masked, w, geometry, gradients[0]);
    }
    if (needs[1] || needs[2]) {
      const TensorOptions options{.dtype = parameter_dtype(x.dtype()), .device = x.options().device};
      gradients[1] = Tensor::empty(w.shape(), options);
      if (needs[2]) gradients[2] = Tensor::empty({w.size(0)}, options);
      kernels::conv2d_backward_weights(masked, x, geometry, gradients[1], gradients[2]);
    }
    return gradients;
  }
};

}  // namespace

Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry,
                const Fused& fused) {
  return apply(Conv2dOperation{.geometry = geometry, .relu = fused.relu, .x = {}, .w = {}, .y = {}}, x, w, bias);
}

}  // namespace tern
