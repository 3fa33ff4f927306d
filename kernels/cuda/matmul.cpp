#include "tern/kernels/cuda/matmul.h"

#include "tern/core/error.h"
#include "tern/kernels/cuda/bias.h"
#include "tern/kernels/cuda/layout.h"
#include "tern/kernels/cuda/product.h"
#include "tern/kernels/cuda/reduction.h"

namespace tern::cuda {
namespace {

/// The weights in the dtype of what they are multiplied with.
Tensor weights_as(const Tensor& w, DType dtype) {
  if (w.dtype() == dtype) return w;
  Tensor result = Tensor::empty(w.shape(), {dtype, w.device()});
  convert(w, result);
  return result;
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  check(y.shape() == kernels::matmul_output_shape(a.shape(), b.shape(), options), "matmul: output of shape ", y.shape(),
        " for ", a.shape(), " and ", b.shape());
  const int64_t m = y.size(-2), n = y.size(-1), k = a.size(options.transpose_a ? -2 : -1);
  const int64_t matrices = m * n == 0 ? 0 : y.numel() / (m * n);
  multiply("matmul",
           {.m = m,
            .n = n,
            .k = k,
            .matrices = matrices,
            .a_step = m * k,
            .b_step = b.rank() == 2 ? 0 : k * n,
            .transpose_a = options.transpose_a,
            .transpose_b = options.transpose_b},
           a, b, y);
}

void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y) {
  check(y.shape() == kernels::linear_output_shape(x.shape(), w.shape()), "linear: output of shape ", y.shape(), " for ",
        x.shape(), " and ", w.shape());
  // cuBLASLt adds a bias of y's dtype by itself. Its relu is not taken: whether NaN passes that is not said.
  const bool apart = relu || x.size(1) == 0 || (bias.defined() && bias.dtype() != y.dtype());
  multiply("linear", {.m = x.size(0), .n = w.size(0), .k = x.size(1), .transpose_b = true}, x, weights_as(w, x.dtype()),
           y, apart ? Tensor() : bias);
  if (apart) add_bias("linear", bias, relu, y);
}

void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx) {
  multiply("linear_backward_data", {.m = dx.size(0), .n = dx.size(1), .k = w.size(0)}, dy, weights_as(w, dy.dtype()),
           dx);
}

void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db) {
  multiply("linear_backward_weights", {.m = dw.size(0), .n = dw.size(1), .k = x.size(0), .transpose_a = true}, dy, x,
           dw);
  channel_sums("linear_backward_weights", dy, db);
}

}  // namespace tern::cuda
