#include "tern/kernels/normalization.h"

#include <cmath>
#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, Tensor& y, Tensor& mean,
                Tensor& inverse_deviation) {
  kernels::check_alike("layer_norm", x, y);
  const int64_t rows = x.size(0), columns = x.size(1);
  visit_floating(x.dtype(), "layer_norm", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const auto count = static_cast<Wide>(columns);
    for (int64_t r = 0; r < rows; ++r) {
      const T* in = x.data<T>() + r * columns;
      T* out = y.data<T>() + r * columns;
      double sum = 0;
      for (int64_t c = 0; c < columns; ++c) sum += in[c];
      const auto average = static_cast<Wide>(sum / static_cast<double>(columns));
      Wide squares = 0;
      for (int64_t c = 0; c < columns; ++c) squares += (in[c] - average) * (in[c] - average);
      const Wide inverse = 1 / std::sqrt(squares / count + static_cast<Wide>(epsilon));
      for (int64_t c = 0; c < columns; ++c)
        out[c] = static_cast<T>((in[c] - average) * inverse * gamma.data<Wide>()[c] + beta.data<Wide>()[c]);
      mean.data<Wide>()[r] = average;
      inverse_deviation.data<Wide>()[r] = inverse;
    }
  });
}

// With n the normalised row and g = gamma·dy: dx = inverse_deviation · (g - mean(g) - n · mean(g·n)).
void layer_norm_backward(const Tensor& dy, const kernels::LayerNormSaved& saved, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta) {
  kernels::check_alike("layer_norm_backward", dy, dx);
  const int64_t rows = dy.size(0), columns = dy.size(1);
  visit_floating(dy.dtype(), "layer_norm_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const auto count = static_cast<Wide>(columns);
    std::vector<Wide> weights(static_cast<size_t>(columns)), shifts(weights.size());
    for (int64_t r = 0; r < rows; ++r) {
      const T *in = saved.x.data<T>() + r * columns, *d_out = dy.data<T>() + r * columns;
      T* d_in = dx.data<T>() + r * columns;
      const Wide average = saved.mean.data<Wide>()[r], inverse = saved.inverse_deviation.data<Wide>()[r];
      const auto normal = [&](int64_t c) { return (in[c] - average) * inverse; };
      const auto slope = [&](int64_t c) { return saved.gamma.data<Wide>()[c] * d_out[c]; };
      Wide slopes = 0, products = 0;
      for (int64_t c = 0; c < columns; ++c) {
        slopes += slope(c);
        products += slope(c) * normal(c);
        weights[static_cast<size_t>(c)] += d_out[c] * normal(c);
        shifts[static_cast<size_t>(c)] += d_out[c];
      }
      for (int64_t c = 0; c < columns; ++c)
        d_in[c] = static_cast<T>(inverse * (slope(c) - slopes / count - normal(c) * products / count));
    }
    for (int64_t c = 0; c < columns; ++c) {
      dgamma.data<Wide>()[c] = weights[static_cast<size_t>(c)];
      dbeta.data<Wide>()[c] = shifts[static_cast<size_t>(c)];
    }
  });
}

}  // namespace

void provide_layer_norm() {
  kernels::layer_norm.provide(Target::reference, layer_norm);
  kernels::layer_norm_backward.provide(Target::reference, layer_norm_backward);
}

}  // namespace tern::reference
