#include "tern/kernels/orthonormal.h"

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// One block. Each thread changes rows of its own.
__global__ void __launch_bounds__(kThreads) orthonormalize_kernel(float* x, int64_t n, int64_t k) {
  const auto dot = [=](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += static_cast<double>(x[i * k + a]) * x[i * k + b];
    return fold_group<kThreads>(sum, Sum{});
  };
  for (int64_t column = 0; column < k; ++column) {
    const double before = sqrt(dot(column, column));
    for (int64_t other = 0; other < column; ++other) {
      const auto along = static_cast<float>(dot(column, other));
      for (int64_t i = threadIdx.x; i < n; i += kThreads) x[i * k + column] -= along * x[i * k + other];
    }
    const double norm = sqrt(dot(column, column));
    const auto factor = static_cast<float>(norm > kernels::kDependent * before ? 1 / norm : 0);
    for (int64_t i = threadIdx.x; i < n; i += kThreads) x[i * k + column] *= factor;
  }
}

void orthonormalize(Tensor& p) {
  kernels::check_orthonormalize(p);
  if (p.numel() == 0) return;
  launch("orthonormalize", p.device(), {.blocks = dim3(1)}, orthonormalize_kernel, p.data<float>(), p.size(0),
         p.size(1));
}

/// A block for each column.
__global__ void __launch_bounds__(kThreads) keep_columns_kernel(const float* q, int64_t n, int64_t k, float* kept) {
  float other = 0;  // 1 if an element of this thread is not 0
  for (int64_t i = threadIdx.x; i < n; i += kThreads) other = q[i * k + blockIdx.x] == 0 ? other : 1;
  if (fold_group<kThreads>(other, Maximum{}) == 0) return;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) kept[i * k + blockIdx.x] = q[i * k + blockIdx.x];
}

void keep_columns(const Tensor& q, Tensor& kept) {
  kernels::check_keep_columns(q, kept);
  launch("keep_columns", q.device(), {.blocks = dim3(static_cast<unsigned>(q.size(1)))}, keep_columns_kernel,
         static_cast<const float*>(q.data<float>()), q.size(0), q.size(1), kept.data<float>());
}

}  // namespace

void provide_orthonormal() {
  kernels::orthonormalize.provide(Target::cuda, orthonormalize);
  kernels::keep_columns.provide(Target::cuda, keep_columns);
}

}  // namespace tern::cuda
