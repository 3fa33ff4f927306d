#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"

namespace tern {
namespace {

Tensor product(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  check(a.dtype() == b.dtype(), "matmul: ", a.dtype(), " ", a.shape(), " times ", b.dtype(), " ", b.shape(),
        ", expected one dtype");
  const Shape shape = kernels::matmul_output_shape(a.shape(), b.shape(), options);
  Tensor y = Tensor::empty(shape, {a.dtype(), a.device()});
  kernels::matmul(a, b, options, y);
  return y;
}

struct Matmul {
  MatmulOptions options;
  Saved a, b;

  Tensor forward(const Tensor& left, const Tensor& right) {
    a = in_format(left, MemoryFormat::row_major);
    b = in_format(right, MemoryFormat::row_major);
    return product(a, b, options);
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    return {needs[0] ? gradient_a(dy) : Tensor(), needs[1] ? gradient_b(dy) : Tensor()};
  }

  bool shares_b() const { return b.rank() < a.rank(); }

  /// [..., m, n] as [... · m, n]. An extent of -1 would not do if another extent is 0.
  static Tensor as_one_matrix(const Tensor& matrices) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < matrices.rank(); ++i) rows *= matrices.size(i);
    return matrices.reshape({rows, matrices.size(-1)});
  }

  Tensor gradient_a(const Tensor& dy) const {
    if (!options.transpose_a) return product(dy, b, {.transpose_b = !options.transpose_b});
    if (!shares_b()) return product(b, dy, {options.transpose_b, true});
    kernels::Order order = kernels::kInOrder;
    std::swap(order[static_cast<size_t>(a.rank()) - 2], order[static_cast<size_t>(a.rank()) - 1]);
    Tensor da = a.empty_like();
    kernels::permute(product(dy, b, {.transpose_b = !options.transpose_b}), order, da);
    return da;
  }
  Tensor gradient_b(const Tensor& dy) const {
    // If b is shared and a is not transposed, the matrices of a are one tall matrix.
    const bool tall = shares_b() && !options.transpose_a;
    const Tensor rows = tall ? as_one_matrix(a) : a.get(), dy_rows = tall ? as_one_matrix(dy) : dy;
    const Tensor db = options.transpose_b ? product(dy_rows, rows, {true, options.transpose_a})
                                          : product(rows, dy_rows, {.transpose_a = !options.transpose_a});
    return sum_to(db, b.shape());
  }
};

struct Linear {
  Fused fused;
  Saved x, w, y;

  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    const Shape shape = kernels::linear_output_shape(input.shape(), weight.shape());
    check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "linear: bias of shape ", bias.shape(),
          ", weight of shape ", weight.shape(), ", expected [out] and [out, in]");
    check(is_floating(input.dtype()), "linear: input is ", input.dtype(), ", expected f32, f64 or bf16");
    check(weight.dtype() == parameter_dtype(input.dtype()), "linear: weight is ", weight.dtype(), " beside input of ",
          input.dtype(), ", expected ", parameter_dtype(input.dtype()));
    x = input;
    w = fused.w_as_x.defined() ? fused.w_as_x : weight;
    Tensor result = Tensor::empty(shape, input.options());
    kernels::linear(input, w, bias, fused.relu, result);
    if (fused.relu) y = result;
    return result;
  }
  Gradients backward(Tensor dy, const Needs& needs) const {
    const Tensor masked = fused.relu ? relu_gradient(y, std::move(dy)) : dy;
    Gradients gradients(3);
    if (needs[0]) {
      gradients[0] = x.empty_like();
      kernels::linear_backward_data(masked, w, gradients[0]);
    }
    if (needs[1] || needs[2]) {
      const TensorOptions options{parameter_dtype(x.dtype()), x.options().device};
      gradients[1] = Tensor::empty(w.shape(), options);
      if (needs[2]) gradients[2] = Tensor::empty({w.size(0)}, options);
      kernels::linear_backward_weights(masked, x, gradients[1], gradients[2]);
    }
    return gradients;
  }
};

/// The shape before the last two dimensions.
std::vector<int64_t> leading(const Shape& matrices) { return {matrices.begin(), matrices.end() - 2}; }

/// `matrices` repeated to these leading dimensions, as one list [L, rows, columns].
Variable repeated(const Variable& matrices, const Shape& lead) {
  std::vector<int64_t> extents(lead.begin(), lead.end());
  const int64_t rows = matrices.shape()[-2], columns = matrices.shape()[-1];
  extents.insert(extents.end(), {rows, columns});
  const Variable all = matrices.shape() == Shape(extents) ? matrices : expand(matrices, extents);
  return reshape(all, Shape{lead.numel(), rows, columns});
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options) {
  const Shape &a_shape = a.shape(), &b_shape = b.shape();
  if (a_shape.rank() == 1 && !options.transpose_a)
    return squeeze(matmul(unsqueeze(a, 0), b, options), b_shape.rank() == 1 ? 0 : -2);
  if (b_shape.rank() == 1 && !options.transpose_b) return squeeze(matmul(a, unsqueeze(b, 1), options), -1);
  const bool matrices = a_shape.rank() >= 2 && b_shape.rank() >= 2;
  if (matrices && (a_shape.rank() > 4 || (b_shape.rank() > 2 && leading(a_shape) != leading(b_shape)))) {
    const Shape lead = broadcast(Shape(leading(a_shape)), Shape(leading(b_shape)), "matmul");
    const Variable products = matmul(repeated(a, lead), repeated(b, lead), options);
    std::vector<int64_t> extents(lead.begin(), lead.end());
    extents.insert(extents.end(), {products.shape()[1], products.shape()[2]});
    return reshape(products, Shape(extents));
  }
  return apply(Matmul{.options = options, .a = {}, .b = {}}, a, b);
}
Variable linear(const Variable& x, const Variable& w, const Variable& bias, const Fused& fused) {
  const Shape& shape = x.shape();
  if (w.shape().rank() == 1) {
    const Variable one = bias.value().defined() ? reshape(bias, {1}) : bias;
    return squeeze(linear(x, unsqueeze(w, 0), one, fused), -1);
  }
  if (shape.rank() != 2 && shape.rank() != 0) {
    const Variable rows =
        linear(reshape(x, Shape{Shape(std::span(shape.begin(), shape.end() - 1)).numel(), shape[-1]}), w, bias, fused);
    std::vector<int64_t> extents(shape.begin(), shape.end());
    extents.back() = rows.shape()[1];
    return reshape(rows, Shape(extents));
  }
  return apply(Linear{.fused = fused, .x = {}, .w = {}, .y = {}}, x, w, bias);
}

}  // namespace tern
