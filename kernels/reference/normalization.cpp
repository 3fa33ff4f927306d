#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

/// Reshapes [N, C] to [N, C, 1, 1]. Returns any other tensor, also an undefined one, unchanged.
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

/// y = gamma · (x - mean) · inverse_deviation + beta + residual, then the relu.
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

void batch_norm_training(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                         const kernels::BatchNormOptions& options, Tensor& y, Tensor& passed, Tensor& mean,
                         Tensor& inverse_deviation) {
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
      running_mean = kernels::updated_statistic(running_mean, average, momentum);
      running_variance = kernels::updated_statistic(running_variance, squares / (elements - 1), momentum);
    }
  });
  if (passed.defined()) kernels::store_passed(y, passed);
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

// d is dy through the relu. x' = (x - mean) · inverse_deviation. A channel has m elements. Then dbeta = Σ d, dgamma = Σ
// d · x', dx = gamma · inverse_deviation · (d - dbeta/m - x' · dgamma/m).
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

/// Calls `visit(n, c, h, w)` for every element of x.
template <class Visit>
void for_each_element(const Tensor& x, Visit visit) {
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t c = 0; c < x.size(1); ++c)
      for (int64_t h = 0; h < x.size(2); ++h)
        for (int64_t w = 0; w < x.size(3); ++w) visit(n, c, h, w);
}

// As in PyTorch, if `size` is even, the window has one more channel below c than above it.
void local_response_norm(const Tensor& x, const kernels::LocalResponseNormOptions& options, Tensor& y,
                         Tensor& denominator) {
  kernels::check_alike("local_response_norm", x, y);
  kernels::check_alike("local_response_norm", x, denominator);
  const int64_t channels = x.size(1), below = options.size / 2, above = options.size - 1 - below;
  visit_floating(x.dtype(), "local_response_norm", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> in(x), out(y), under(denominator);
    for_each_element(x, [&](auto n, auto c, auto h, auto w) {
      Wide squares = 0;
      for (int64_t q = std::max<int64_t>(c - below, 0); q <= std::min(c + above, channels - 1); ++q)
        squares += Wide(in(n, q, h, w)) * Wide(in(n, q, h, w));
      const Wide base =
          static_cast<Wide>(options.k) + static_cast<Wide>(options.alpha / static_cast<double>(options.size)) * squares;
      under(n, c, h, w) = static_cast<T>(base);
      out(n, c, h, w) = static_cast<T>(in(n, c, h, w) * std::pow(base, static_cast<Wide>(-options.beta)));
    });
  });
}

// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1). The sum is
// over all channels q whose window holds c.
void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const kernels::LocalResponseNormOptions& options, Tensor& dx) {
  kernels::check_alike("local_response_norm_backward", dy, x);
  kernels::check_alike("local_response_norm_backward", dy, denominator);
  kernels::check_alike("local_response_norm_backward", dy, dx);
  const int64_t channels = x.size(1), below = options.size / 2, above = options.size - 1 - below;
  visit_floating(dy.dtype(), "local_response_norm_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy), in(x), under(denominator), d_in(dx);
    const auto beta = static_cast<Wide>(options.beta);
    const auto factor = static_cast<Wide>(2 * options.alpha * options.beta / static_cast<double>(options.size));
    for_each_element(x, [&](auto n, auto c, auto h, auto w) {
      Wide sum = 0;
      for (int64_t q = std::max<int64_t>(c - above, 0); q <= std::min(c + below, channels - 1); ++q)
        sum += Wide(d_out(n, q, h, w)) * Wide(in(n, q, h, w)) * std::pow(Wide(under(n, q, h, w)), -beta - 1);
      d_in(n, c, h, w) =
          static_cast<T>(d_out(n, c, h, w) * std::pow(Wide(under(n, c, h, w)), -beta) - factor * in(n, c, h, w) * sum);
    });
  });
}

}  // namespace

void provide_normalization() {
  kernels::batch_norm_training.provide(Target::reference, batch_norm_training);
  kernels::batch_norm_inference.provide(Target::reference, batch_norm_inference);
  kernels::batch_norm_backward.provide(Target::reference, batch_norm_backward);
  kernels::local_response_norm.provide(Target::reference, local_response_norm);
  kernels::local_response_norm_backward.provide(Target::reference, local_response_norm_backward);
}

}  // namespace tern::reference
