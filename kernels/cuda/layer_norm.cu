#include "tern/kernels/normalization.h"

#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

template <class T>
struct Normalize {
  const T* x;
  const float *gamma, *beta;
  float epsilon;
  T* y;
  float *mean, *inverse_deviation;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    T* out = y + row.begin();
    const float count = static_cast<float>(row.columns);
    const float rounded = row.fold(0, Sum{}, [&](int64_t c) { return float(in[c]); }) / count;
    float own = 0;
    const float squares = row.fold(0, Sum{}, [&](int64_t c) {
      const float distance = float(in[c]) - rounded;
      own += distance;
      return distance * distance;
    });
    // The distances tell by how much rounding moved the average.
    const float shift = fold_group<Group>(own, Sum{}) / count, average = rounded + shift;
    const float variance = fmaf(-shift, shift, squares / count);
    const float inverse = rsqrtf((variance < 0 ? 0 : variance) + epsilon);
    row.for_each([&](int64_t c) { out[c] = static_cast<T>((float(in[c]) - average) * inverse * gamma[c] + beta[c]); });
    if (!row.exists || threadIdx.x % Group != 0) return;
    mean[row.number] = average;
    inverse_deviation[row.number] = inverse;
  }
};

/// What the backward reads.
template <class T>
struct Inputs {
  const T *dy, *x;
  const float *gamma, *mean, *inverse_deviation;
};

template <class T>
struct NormalizeBackward {
  Inputs<T> from;
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T *in = from.x + row.begin(), *d_out = from.dy + row.begin();
    T* d_in = dx + row.begin();
    const float average = row.exists ? from.mean[row.number] : 0,
                inverse = row.exists ? from.inverse_deviation[row.number] : 0;
    const float share = 1 / static_cast<float>(row.columns);
    const auto normal = [&](int64_t c) { return (float(in[c]) - average) * inverse; };
    const auto slope = [&](int64_t c) { return from.gamma[c] * float(d_out[c]); };
    const float slopes = share * row.fold(0, Sum{}, slope);
    const float products = share * row.fold(0, Sum{}, [&](int64_t c) { return slope(c) * normal(c); });
    row.for_each([&](int64_t c) { d_in[c] = static_cast<T>(inverse * (slope(c) - slopes - normal(c) * products)); });
  }
};

/// The terms of dgamma and dbeta.
template <class T>
struct ColumnTerms {
  Inputs<T> from;
  int64_t columns;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const int64_t row = at / columns;
    const float average = from.mean[row], inverse = from.inverse_deviation[row];
    for (int j = 0; j < Width; ++j) {
      const float d = float(from.dy[at + j]);
      sums[j] += d * (float(from.x[at + j]) - average) * inverse;
      sums[Width + j] += d;
    }
  }
};
struct StoreColumns {
  float *dgamma, *dbeta;
  __device__ void operator()(int64_t column, const double* totals) const {
    dgamma[column] = static_cast<float>(totals[0]);
    dbeta[column] = static_cast<float>(totals[1]);
  }
};

void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, Tensor& y, Tensor& mean,
                Tensor& inverse_deviation) {
  kernels::check_alike("layer_norm", x, y);
  visit_fast(x.dtype(), "layer_norm", [&]<class T>(T) {
    for_each_row("layer_norm", x.device(), x.size(0), x.size(1),
                 Normalize<T>{x.data<T>(), gamma.data<float>(), beta.data<float>(), static_cast<float>(epsilon),
                              y.data<T>(), mean.data<float>(), inverse_deviation.data<float>()});
  });
}

void layer_norm_backward(const Tensor& dy, const kernels::LayerNormSaved& saved, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta) {
  constexpr const char* kOperation = "layer_norm_backward";
  kernels::check_alike(kOperation, dy, dx);
  const int64_t rows = dy.size(0), columns = dy.size(1);
  visit_fast(dy.dtype(), kOperation, [&]<class T>(T) {
    const Inputs<T> from{dy.data<T>(), saved.x.data<T>(), saved.gamma.data<float>(), saved.mean.data<float>(),
                         saved.inverse_deviation.data<float>()};
    for_each_row(kOperation, dy.device(), rows, columns, NormalizeBackward<T>{from, dx.data<T>()});
    // Only the strides of this tensor are used.
    const Summation summation(kOperation, dy, Tensor::empty({1, columns}));
    sum<2, 1>(kOperation, dy.device(), summation, true, ColumnTerms<T>{from, columns},
              StoreColumns{dgamma.data<float>(), dbeta.data<float>()});
  });
}

}  // namespace

void provide_layer_norm() {
  kernels::layer_norm.provide(Target::cuda, layer_norm);
  kernels::layer_norm_backward.provide(Target::cuda, layer_norm_backward);
}

}  // namespace tern::cuda
