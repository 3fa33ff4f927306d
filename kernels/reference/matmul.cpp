#include "tern/kernels/matmul.h"

#include "tern/core/visit.h"
#include "tern/kernels/product_steps.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  check(y.shape() == kernels::matmul_output_shape(a.shape(), b.shape(), options), "matmul: output of shape ", y.shape(),
        " for ", a.shape(), " and ", b.shape());
  const int64_t m = y.size(-2), n = y.size(-1), k = a.size(options.transpose_a ? -2 : -1);
  const int64_t matrices = m * n == 0 ? 0 : y.numel() / (m * n);
  visit_floating(a.dtype(), "matmul", [&]<class T>(T) {
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
      const T* left = a.data<T>() + matrix * m * k;
      const T* right = b.data<T>() + (b.rank() == 2 ? 0 : matrix * k * n);
      T* out = y.data<T>() + matrix * m * n;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          wider_t<T> sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += wider_t<T>(options.transpose_a ? left[l * m + i] : left[i * k + l]) *
                   wider_t<T>(options.transpose_b ? right[j * k + l] : right[l * n + j]);
          out[i * n + j] = static_cast<T>(sum);
        }
    }
  });
}

void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y) {
  check(y.shape() == kernels::linear_output_shape(x.shape(), w.shape()), "linear: output of shape ", y.shape(), " for ",
        x.shape(), " and ", w.shape());
  const int64_t rows = x.size(0), in = x.size(1), out = w.size(0);
  visit_floating(x.dtype(), "linear", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const T* inputs = x.data<T>();
    const Wide* weights = w.data<Wide>();
    T* outputs = y.data<T>();
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t o = 0; o < out; ++o) {
        Wide sum = bias.defined() ? bias.data<Wide>()[o] : Wide(0);
        for (int64_t i = 0; i < in; ++i) sum += inputs[n * in + i] * weights[o * in + i];
        outputs[n * out + o] = static_cast<T>(relu && sum < 0 ? Wide(0) : sum);
      }
  });
}

void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx) {
  const int64_t rows = dx.size(0), in = dx.size(1), out = w.size(0);
  visit_floating(dy.dtype(), "linear_backward_data", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const T* d_outputs = dy.data<T>();
    const Wide* weights = w.data<Wide>();
    T* d_inputs = dx.data<T>();
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t i = 0; i < in; ++i) {
        Wide sum = 0;
        for (int64_t o = 0; o < out; ++o) sum += d_outputs[n * out + o] * weights[o * in + i];
        d_inputs[n * in + i] = static_cast<T>(sum);
      }
  });
}

void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db) {
  const int64_t rows = x.size(0), in = x.size(1), out = dy.size(1);
  visit_floating(dy.dtype(), "linear_backward_weights", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const T *d_outputs = dy.data<T>(), *inputs = x.data<T>();
    Wide* d_weights = dw.data<Wide>();
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) {
        Wide sum = 0;
        for (int64_t n = 0; n < rows; ++n) sum += Wide(d_outputs[n * out + o]) * Wide(inputs[n * in + i]);
        d_weights[o * in + i] = sum;
      }
      if (!db.defined()) continue;
      Wide sum = 0;
      for (int64_t n = 0; n < rows; ++n) sum += d_outputs[n * out + o];
      db.data<Wide>()[o] = sum;
    }
  });
}

}  // namespace

void provide_matmul() {
  kernels::matmul.provide(Target::reference, matmul);
  kernels::add_and_project.provide(Target::reference, kernels::add_then_project<Target::reference>);
  kernels::subtract_product.provide(Target::reference, kernels::multiply_then_subtract<Target::reference>);
  kernels::linear.provide(Target::reference, linear);
  kernels::linear_backward_data.provide(Target::reference, linear_backward_data);
  kernels::linear_backward_weights.provide(Target::reference, linear_backward_weights);
}

}  // namespace tern::reference
