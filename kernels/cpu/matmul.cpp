#include <algorithm>
#include <limits>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/cpu/gemm.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/product_steps.h"
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

/// The least number of rows of a thread.
int64_t grain_of_rows(int64_t columns) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns)); }

/// y = y + bias along each row, then max(·, 0) if `relu`. y is [rows, columns].
void add_bias(const Tensor& bias, bool relu, const Tensor& y) {
  const int64_t columns = y.size(1);
  const float* shift = bias.defined() ? bias.data<float>() : nullptr;
  const float floor = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  float* out = y.data<float>();
  parallel_vectorized(y.size(0), grain_of_rows(columns), [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        const float value = out[row * columns + j] + (shift ? shift[j] : 0.0f);
        out[row * columns + j] = value < floor ? floor : value;
      }
    }
  });
}

using kernels::kNarrowFactor;
constexpr int64_t kSet = 4;  ///< columns of a factor that one pass takes

/// The columns of a narrow factor [n, k], one after the other, and columns of zeros that fill the last set.
std::vector<float> columns_of(const Tensor& factor) {
  const int64_t n = factor.size(0), k = factor.size(1);
  std::vector<float> columns(static_cast<size_t>((k + kSet - 1) / kSet * kSet * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < k; ++c) columns[static_cast<size_t>(c * n + i)] = factor.data<float>()[i * k + c];
  return columns;
}

/// y [n, k] = aᵀ b for a [rows, n] and a narrow b [rows, k]: one pass over a. Each thread has some columns of a, so the
/// sums do not depend on the number of threads.
void multiply_transposed(const Tensor& a, const Tensor& b, const Tensor& y) {
  const int64_t rows = a.size(0), n = a.size(1), k = b.size(1);
  const float *from = a.data<float>(), *factor = b.data<float>();
  float* out = y.data<float>();
  parallel_for(0, n, std::max<int64_t>(64, kGrain / std::max<int64_t>(1, rows)), [=](int64_t first, int64_t last) {
    const int64_t width = last - first;
    std::vector<float> sums(static_cast<size_t>(k * width));
    float* const to = sums.data();
    vectorized([=] {
      int64_t i = 0;
      for (; i + kSet <= rows; i += kSet) {
        const float* const a0 = from + i * n + first;
        const float *const a1 = a0 + n, *const a2 = a1 + n, *const a3 = a2 + n;
        for (int64_t c = 0; c < k; ++c) {
          const float b0 = factor[i * k + c], b1 = factor[(i + 1) * k + c], b2 = factor[(i + 2) * k + c],
                      b3 = factor[(i + 3) * k + c];
          float* const sum = to + c * width;
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) sum[j] += a0[j] * b0 + a1[j] * b1 + a2[j] * b2 + a3[j] * b3;
        }
      }
      for (; i < rows; ++i)
        for (int64_t c = 0; c < k; ++c) {
          float* const sum = to + c * width;
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) sum[j] += from[i * n + first + j] * factor[i * k + c];
        }
    });
    for (int64_t j = 0; j < width; ++j)
      for (int64_t c = 0; c < k; ++c) out[(first + j) * k + c] = to[c * width + j];
  });
}

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y) {
  const Tensor left = as_f32(a), right = as_f32(b);
  if (y.rank() == 2 && y.dtype() == DType::f32 && options.transpose_a && !options.transpose_b &&
      y.size(1) <= kNarrowFactor)
    return multiply_transposed(left, right, y);
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

void add_and_project(const Tensor& x, const Tensor& y, const Tensor& q, Tensor& m, Tensor& p) {
  const int64_t rows = m.size(0), columns = m.size(1), k = q.size(1);
  if (m.dtype() != DType::f32 || k > kNarrowFactor) return kernels::add_then_project<Target::cpu>(x, y, q, m, p);
  const std::vector<float> factor = columns_of(q);
  const float *left = x.data<float>(), *right = y.data<float>(), *of_q = factor.data();
  float *sum = m.data<float>(), *projected = p.data<float>();
  parallel_vectorized(rows, grain_of_rows(columns), [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      float* const row = sum + i * columns;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) row[j] = left[i * columns + j] + right[i * columns + j];
      for (int64_t set = 0; set < k; set += kSet) {
        const float *const q0 = of_q + set * columns, *const q1 = q0 + columns, *const q2 = q1 + columns,
                           *const q3 = q2 + columns;
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (int64_t j = 0; j < columns; ++j) {
          s0 += row[j] * q0[j];
          s1 += row[j] * q1[j];
          s2 += row[j] * q2[j];
          s3 += row[j] * q3[j];
        }
        const float sums[kSet] = {s0, s1, s2, s3};
        for (int64_t c = set; c < std::min(k, set + kSet); ++c) projected[i * k + c] = sums[c - set];
      }
    }
  });
}

void subtract_product(const Tensor& p, const Tensor& q, const Tensor& m, Tensor& y, Tensor& rest) {
  const int64_t rows = m.size(0), columns = m.size(1), k = q.size(1);
  if (m.dtype() != DType::f32 || k > kNarrowFactor)
    return kernels::multiply_then_subtract<Target::cpu>(p, q, m, y, rest);
  const std::vector<float> factor = columns_of(q);
  const float *of_p = p.data<float>(), *of_q = factor.data(), *from = m.data<float>();
  float *product = y.data<float>(), *left = rest.data<float>();
  parallel_vectorized(rows, grain_of_rows(columns), [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      float* const row = product + i * columns;
      std::fill_n(row, columns, 0.0f);
      for (int64_t c = 0; c < k; ++c) {
        const float weight = of_p[i * k + c];
        const float* const column = of_q + c * columns;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) row[j] += weight * column[j];
      }
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) left[i * columns + j] = from[i * columns + j] - row[j];
    }
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
  if (db.defined()) column_sums(output.data<float>(), 1, dy.size(0), dy.size(1), db.data<float>());
}

}  // namespace

void provide_matmul() {
  kernels::matmul.provide(Target::cpu, matmul);
  kernels::add_and_project.provide(Target::cpu, add_and_project);
  kernels::subtract_product.provide(Target::cpu, subtract_product);
  kernels::linear.provide(Target::cpu, linear);
  kernels::linear_backward_data.provide(Target::cpu, linear_backward_data);
  kernels::linear_backward_weights.provide(Target::cpu, linear_backward_weights);
}

}  // namespace tern::cpu
