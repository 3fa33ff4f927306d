#include <limits>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/cpu/gemm.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// Returns x itself if it is f32; otherwise a converted copy.
Tensor as_f32(const Tensor& x) {
  if (x.dtype() == DType::f32) return x;
  Tensor converted = Tensor::empty(x.shape(), {.dtype = DType::f32, .format = x.format()});
  kernels::convert.on(Target::cpu)(x, converted);
  return converted;
}

/// Calls `compute(out)` with `y` itself if it is f32. Otherwise calls it with an f32 buffer and converts the buffer
/// into y.
template <class Compute>
void write_as_f32(Tensor& y, Compute compute) {
  if (y.dtype() == DType::f32) return compute(y);
  const Tensor buffer = Tensor::empty(y.shape(), {.dtype = DType::f32, .format = y.format()});
  compute(buffer);
  kernels::convert.on(Target::cpu)(buffer, y);
}

/// y = y + bias along each row, then max(·, 0) if `relu`. y is [rows, columns].
void add_bias(const Tensor& bias, bool relu, const Tensor& y) {
  const int64_t columns = y.size(1);
  const float* shift = bias.defined() ? bias.data<float>() : nullptr;
  const float floor = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  float* out = y.data<float>();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns));
  parallel_vectorized(y.size(0), grain, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        const float value = out[row * columns + j] + (shift ? shift[j] : 0.0f);
        out[row * columns + j] = value < floor ? floor : value;
      }
    }
  });
}

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  const Tensor left = as_f32(a), right = as_f32(b);
  const bool shared = b.rank() == 2 && a.rank() > 2;
  Gemm gemm{.m = y.size(-2),
            .n = y.size(-1),
            .k = a.size(options.transpose_a ? -2 : -1),
            .transpose_a = options.transpose_a,
            .transpose_b = options.transpose_b};
  if (shared && !options.transpose_a) gemm.m = y.numel() / std::max<int64_t>(1, gemm.n);
  const int64_t a_step = gemm.m * gemm.k, b_step = shared ? 0 : gemm.k * gemm.n, y_step = gemm.m * gemm.n;
  const int64_t matrices = y_step == 0 ? 0 : y.numel() / y_step;
  write_as_f32(y, [&](const Tensor& out) {
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        sgemm(gemm, left.data<float>() + i * a_step, right.data<float>() + i * b_step, out.data<float>() + i * y_step);
    };
    if (matrices >= thread_count())
      parallel_for(0, matrices, 1, run);
    else
      run(0, matrices);
  });
}

void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y) {
  const Tensor input = as_f32(x);
  const BatchProduct shape{.batch = x.size(0), .in = w.size(1), .out = w.size(0)};
  const float *from = input.data<float>(), *weights = w.data<float>();
  write_as_f32(y, [&](const Tensor& out) {
    if (suits_batch_product(shape))
      batch_forward(shape, from, weights, out.data<float>());
    else
      sgemm({.m = shape.batch, .n = shape.out, .k = shape.in, .transpose_b = true}, from, weights, out.data<float>());
    if (bias.defined() || relu) add_bias(bias, relu, out);
  });
}

void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx) {
  const Tensor output = as_f32(dy);
  write_as_f32(dx, [&](const Tensor& out) {
    sgemm({.m = dy.size(0), .n = w.size(1), .k = w.size(0)}, output.data<float>(), w.data<float>(), out.data<float>());
  });
}

void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db) {
  const Tensor output = as_f32(dy), input = as_f32(x);
  sgemm({.m = dw.size(0), .n = dw.size(1), .k = dy.size(0), .transpose_a = true}, output.data<float>(),
        input.data<float>(), dw.data<float>());
  if (db.defined()) column_sums(output.data<float>(), 1, dy.size(0), dy.size(1), 1.0f, db.data<float>());
}

}  // namespace

void provide_matmul() {
  kernels::matmul.provide(Target::cpu, matmul);
  kernels::linear.provide(Target::cpu, linear);
  kernels::linear_backward_data.provide(Target::cpu, linear_backward_data);
  kernels::linear_backward_weights.provide(Target::cpu, linear_backward_weights);
}

}  // namespace tern::cpu
