#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/check.h"
#include "tern/kernels/reference/indexing.h"
#include "tern/kernels/reference/normalization.h"

namespace tern::reference {
namespace {

/// [N, C] as [N, C, 1, 1]; undefined stays so.
Tensor with_pixels(const Tensor& x) {
  return x.defined() && x.rank() == 2 ? x.reshape({x.size(0), x.size(1), 1, 1}) : x;
}

/// Calls `visit(n, h, w)` for every element of one channel of x.
template <class Visit>
void for_each_in_channel(const Tensor& x, Visit visit) {
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t h = 0; h < x.size(2); ++h)
      for (int64_t w = 0; w < x.size(3); ++w) visit(n, h, w);
}

/// y = gamma · (x - mean) · inverse_deviation + beta, + residual, through the relu.
template <class T>
void normalize_channel(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                       bool relu, int64_t c, wider_t<T> mean, wider_t<T> inverse_deviation, const Tensor& y) {
  using Wide = wider_t<T>;
  const Wide gamma = parameters.gamma.data<Wide>()[c], beta = parameters.beta.data<Wide>()[c];
  const View4<T> in(x), out(y);
  for_each_in_channel(x, [&](auto n, auto h, auto w) {
    Wide value = gamma * (in(n, c, h, w) - mean) * inverse_deviation + beta;
    if (residual.defined()) value += View4<T>{residual}(n, c, h, w);
    out(n, c, h, w) = static_cast<T>(relu && value < 0 ? Wide(0) : value);
  });
}

}  // namespace

void batch_norm_training(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                         const kernels::BatchNormOptions& options, Tensor& y, Tensor& mean, Tensor& inverse_deviation) {
  const auto count = kernels::batch_norm_count(x.shape());
  kernels::check_alike("batch_norm_training", x, y);
  const Tensor x4 = with_pixels(x), residual4 = with_pixels(residual), y4 = with_pixels(y);
  visit_floating(x4.dtype(), "batch_norm_training", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> in(x4);
    const auto elements = static_cast<Wide>(count), momentum = static_cast<Wide>(options.momentum);
    for (int64_t c = 0; c < x4.size(1); ++c) {
      Wide sum = 0, squares = 0;
      for_each_in_channel(x4, [&](auto n, auto h, auto w) { sum += in(n, c, h, w); });
      const Wide average = sum / elements;
      for_each_in_channel(x4, [&](auto n, auto h, auto w) {
        const Wide centered = in(n, c, h, w) - average;
        squares += centered * centered;
      });
      const Wide inverse = 1 / std::sqrt(squares / elements + static_cast<Wide>(options.epsilon));
      normalize_channel<T>(x4, residual4, parameters, options.relu, c, average, inverse, y4);
      mean.data<Wide>()[c] = average;
      inverse_deviation.data<Wide>()[c] = inverse;
      Wide& running_mean = parameters.running_mean.data<Wide>()[c];
      Wide& running_variance = parameters.running_variance.data<Wide>()[c];
      running_mean = (1 - momentum) * running_mean + momentum * average;
      running_variance = (1 - momentum) * running_variance + momentum * squares / (elements - 1);
    }
  });
}

void batch_norm_inference(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                          const kernels::BatchNormOptions& options, Tensor& y) {
  kernels::check_alike("batch_norm_inference", x, y);
  const Tensor x4 = with_pixels(x), residual4 = with_pixels(residual), y4 = with_pixels(y);
  visit_floating(x4.dtype(), "batch_norm_inference", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t c = 0; c < x4.size(1); ++c) {
      const Wide variance = parameters.running_variance.data<Wide>()[c];
      const Wide inverse = 1 / std::sqrt(variance + static_cast<Wide>(options.epsilon));
      normalize_channel<T>(x4, residual4, parameters, options.relu, c, parameters.running_mean.data<Wide>()[c], inverse,
                           y4);
    }
  });
}

// With d = dy through the relu and x' = (x - mean) · inverse_deviation over a channel of m elements:
// dbeta = Σ d, dgamma = Σ d · x', dx = gamma · inverse_deviation · (d - dbeta/m - x' · dgamma/m).
void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual) {
  kernels::check_alike("batch_norm_backward", dy, saved.x);
  kernels::check_alike("batch_norm_backward", dy, dx);
  const Tensor dy4 = with_pixels(dy), x4 = with_pixels(saved.x), y4 = with_pixels(saved.y), dx4 = with_pixels(dx),
               dresidual4 = with_pixels(dresidual);
  visit_floating(dy4.dtype(), "batch_norm_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy4), in(x4), d_in(dx4);
    const auto elements = static_cast<Wide>(dy4.numel() / dy4.size(1));
    for (int64_t c = 0; c < dy4.size(1); ++c) {
      const Wide mean = saved.mean.data<Wide>()[c], inverse = saved.inverse_deviation.data<Wide>()[c];
      const Wide gamma = saved.gamma.data<Wide>()[c];
      const auto through_relu = [&](auto n, auto h, auto w) {
        return relu && View4<T>{y4}(n, c, h, w) <= 0 ? Wide(0) : Wide(d_out(n, c, h, w));
      };
      Wide sum = 0, product = 0;
      for_each_in_channel(dy4, [&](auto n, auto h, auto w) {
        const Wide d = through_relu(n, h, w);
        sum += d;
        product += d * (in(n, c, h, w) - mean) * inverse;
      });
      for_each_in_channel(dy4, [&](auto n, auto h, auto w) {
        const Wide d = through_relu(n, h, w), normalized = (in(n, c, h, w) - mean) * inverse;
        d_in(n, c, h, w) = static_cast<T>(gamma * inverse * (d - sum / elements - normalized * product / elements));
        if (dresidual4.defined()) View4<T>{dresidual4}(n, c, h, w) = static_cast<T>(d);
      });
      dgamma.data<Wide>()[c] = product;
      dbeta.data<Wide>()[c] = sum;
    }
  });
}

}  // namespace tern::reference
