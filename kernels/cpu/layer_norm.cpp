#include "tern/kernels/normalization.h"

#include <algorithm>
#include <cmath>

#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

int64_t rows_per_thread(int64_t columns) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns)); }

void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, Tensor& y, Tensor& mean,
                Tensor& inverse_deviation) {
  const int64_t columns = x.size(1);
  const float *scales = gamma.data<float>(), *shifts = beta.data<float>();
  float *means = mean.data<float>(), *inverses = inverse_deviation.data<float>();
  visit_fast(x.dtype(), "layer_norm", [&]<class T>(T) {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    parallel_vectorized(x.size(0), rows_per_thread(columns), [=](int64_t first, int64_t last) {
      const auto count = static_cast<float>(columns);
      for (int64_t r = first; r < last; ++r) {
        const T* in = from + r * columns;
        T* out = to + r * columns;
        float sum = 0, rest = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < columns; ++c) sum += load(in + c);
        const float rounded = sum / count;
#pragma omp simd reduction(+ : rest, squares)
        for (int64_t c = 0; c < columns; ++c) {
          const float distance = load(in + c) - rounded;
          rest += distance;
          squares += distance * distance;
        }
        // The distances tell by how much rounding moved the average.
        const float average = rounded + rest / count;
        const auto spread = static_cast<float>(std::max(squares - double{rest} * rest / double{count}, 0.0));
        const float inverse = 1.0f / std::sqrt(spread / count + static_cast<float>(epsilon));
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c)
          store(out + c, (load(in + c) - average) * inverse * scales[c] + shifts[c]);
        means[r] = average;
        inverses[r] = inverse;
      }
    });
  });
}

/// Rows whose shares of dgamma and dbeta are summed before the shares of other blocks are added. It does not depend on
/// the number of threads, so the results do not either.
constexpr int64_t kRowsOfBlock = 32;

// The formula is that of the reference. A block of rows is read once: for dx and for its sums per column.
void layer_norm_backward(const Tensor& dy, const kernels::LayerNormSaved& saved, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta) {
  const int64_t rows = dy.size(0), columns = dy.size(1), blocks = (rows + kRowsOfBlock - 1) / kRowsOfBlock;
  const Tensor partials = Tensor::zeros({2, blocks, columns});
  float *of_gamma = partials.data<float>(), *of_beta = of_gamma + blocks * columns;
  const float *scales = saved.gamma.data<float>(), *means = saved.mean.data<float>(),
              *inverses = saved.inverse_deviation.data<float>();
  visit_fast(dy.dtype(), "layer_norm_backward", [&]<class T>(T) {
    const T *x = saved.x.data<T>(), *gradients = dy.data<T>();
    T* to = dx.data<T>();
    const int64_t grain = std::max<int64_t>(1, rows_per_thread(columns) / kRowsOfBlock);
    parallel_vectorized(blocks, grain, [=](int64_t first, int64_t last) {
      const float share = 1.0f / static_cast<float>(columns);
      for (int64_t block = first; block < last; ++block) {
        float *dg = of_gamma + block * columns, *db = of_beta + block * columns;
        for (int64_t r = block * kRowsOfBlock; r < std::min(rows, (block + 1) * kRowsOfBlock); ++r) {
          const T *in = x + r * columns, *d_out = gradients + r * columns;
          T* d_in = to + r * columns;
          const float average = means[r], inverse = inverses[r];
          float slopes = 0, products = 0;
#pragma omp simd reduction(+ : slopes, products)
          for (int64_t c = 0; c < columns; ++c) {
            const float d = load(d_out + c), normal = (load(in + c) - average) * inverse, slope = scales[c] * d;
            slopes += slope;
            products += slope * normal;
            dg[c] += d * normal;
            db[c] += d;
          }
          slopes *= share;
          products *= share;
#pragma omp simd
          for (int64_t c = 0; c < columns; ++c) {
            const float normal = (load(in + c) - average) * inverse;
            store(d_in + c, inverse * (scales[c] * load(d_out + c) - slopes - normal * products));
          }
        }
      }
    });
  });
  column_sums(of_gamma, 1, blocks, columns, dgamma.data<float>());
  column_sums(of_beta, 1, blocks, columns, dbeta.data<float>());
}

}  // namespace

void provide_layer_norm() {
  kernels::layer_norm.provide(Target::cpu, layer_norm);
  kernels::layer_norm_backward.provide(Target::cpu, layer_norm_backward);
}

}  // namespace tern::cpu
