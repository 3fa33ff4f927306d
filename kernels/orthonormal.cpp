#include "tern/kernels/orthonormal.h"

#include <cmath>

namespace tern::kernels {
namespace {

/// Σ of the products of two columns of x [n, k].
double dot(const float* x, int64_t n, int64_t k, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{x[i * k + a]} * x[i * k + b];
  return sum;
}

}  // namespace

void orthonormalize_by_loops(Tensor& p) {
  check_orthonormalize(p);
  const int64_t n = p.size(0), k = p.size(1);
  auto* const x = p.data<float>();
  for (int64_t column = 0; column < k; ++column) {
    const double before = std::sqrt(dot(x, n, k, column, column));
    for (int64_t other = 0; other < column; ++other) {
      const auto along = static_cast<float>(dot(x, n, k, column, other));
      for (int64_t i = 0; i < n; ++i) x[i * k + column] -= along * x[i * k + other];
    }
    const double norm = std::sqrt(dot(x, n, k, column, column));
    const auto factor = static_cast<float>(norm > kDependent * before ? 1 / norm : 0);
    for (int64_t i = 0; i < n; ++i) x[i * k + column] *= factor;
  }
}

void keep_columns_by_loops(const Tensor& q, Tensor& kept) {
  check_keep_columns(q, kept);
  const int64_t n = q.size(0), k = q.size(1);
  const auto* const from = q.data<float>();
  for (int64_t column = 0; column < k; ++column) {
    bool is_zero = true;
    for (int64_t i = 0; i < n; ++i) is_zero = is_zero && from[i * k + column] == 0;
    for (int64_t i = 0; !is_zero && i < n; ++i) kept.data<float>()[i * k + column] = from[i * k + column];
  }
}

}  // namespace tern::kernels
