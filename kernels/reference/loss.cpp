#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

/// log Σ exp(x). Subtracts the largest element first, so that nothing overflows.
template <class T>
wider_t<T> log_sum_exp(const T* x, int64_t count) {
  using Wide = wider_t<T>;
  Wide largest = x[0], sum = 0;
  for (int64_t i = 1; i < count; ++i) largest = std::max(largest, Wide(x[i]));
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

/// Calls `visit(offset)` for every row along the last dimension. `offset` is that of the row's first element.
template <class Visit>
void for_each_row(const Tensor& x, Visit visit) {
  for (int64_t offset = 0; offset < x.numel(); offset += x.size(-1)) visit(offset);
}

void softmax(const Tensor& x, Tensor& y) {
  kernels::check_alike("softmax", x, y);
  visit_floating(x.dtype(), "softmax", [&]<class T>(T) {
    for_each_row(x, [&](int64_t row) {
      const T* in = x.data<T>() + row;
      T* out = y.data<T>() + row;
      const auto total = log_sum_exp(in, x.size(-1));
      for (int64_t c = 0; c < x.size(-1); ++c) out[c] = static_cast<T>(std::exp(in[c] - total));
    });
  });
}

void log_softmax(const Tensor& x, Tensor& y) {
  kernels::check_alike("log_softmax", x, y);
  visit_floating(x.dtype(), "log_softmax", [&]<class T>(T) {
    for_each_row(x, [&](int64_t row) {
      const T* in = x.data<T>() + row;
      T* out = y.data<T>() + row;
      const auto total = log_sum_exp(in, x.size(-1));
      for (int64_t c = 0; c < x.size(-1); ++c) out[c] = static_cast<T>(in[c] - total);
    });
  });
}

// dx = y · (dy - Σ y·dy)
void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike("softmax_backward", y, dy);
  kernels::check_alike("softmax_backward", y, dx);
  visit_floating(y.dtype(), "softmax_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for_each_row(y, [&](int64_t row) {
      const T *out = y.data<T>() + row, *d_out = dy.data<T>() + row;
      T* d_in = dx.data<T>() + row;
      Wide sum = 0;
      for (int64_t c = 0; c < y.size(-1); ++c) sum += Wide(out[c]) * Wide(d_out[c]);
      for (int64_t c = 0; c < y.size(-1); ++c) d_in[c] = static_cast<T>(out[c] * (d_out[c] - sum));
    });
  });
}

// dx = dy - exp(y) · Σ dy
void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike("log_softmax_backward", y, dy);
  kernels::check_alike("log_softmax_backward", y, dx);
  visit_floating(y.dtype(), "log_softmax_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for_each_row(y, [&](int64_t row) {
      const T *out = y.data<T>() + row, *d_out = dy.data<T>() + row;
      T* d_in = dx.data<T>() + row;
      Wide sum = 0;
      for (int64_t c = 0; c < y.size(-1); ++c) sum += d_out[c];
      for (int64_t c = 0; c < y.size(-1); ++c) d_in[c] = static_cast<T>(d_out[c] - std::exp(Wide(out[c])) * sum);
    });
  });
}

/// The smoothed one-hot target of class c.
double target_of(int64_t c, int64_t label, int64_t classes, double smoothing) {
  return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

void check_labels(const Tensor& x, const Tensor& labels) {
  check(x.rank() == 2 && labels.shape() == Shape{x.size(0)}, "cross_entropy: input ", x.shape(), " and labels ",
        labels.shape(), ", expected [N, C] and [N]");
}

// loss = -1/N Σ target · log softmax(x)
void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities) {
  check_labels(x, labels);
  const int64_t rows = x.size(0), classes = x.size(1);
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide sum = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const T* in = x.data<T>() + n * classes;
      const int64_t label = labels.data<int64_t>()[n];
      kernels::check_label(labels, n, classes);
      const Wide total = log_sum_exp(in, classes);
      for (int64_t c = 0; c < classes; ++c) {
        const auto target = static_cast<Wide>(target_of(c, label, classes, smoothing));
        if (target != 0) sum -= target * (in[c] - total);
        probabilities.data<Wide>()[n * classes + c] = std::exp(in[c] - total);
      }
    }
    loss.data<Wide>()[0] = sum / static_cast<Wide>(rows);
  });
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx) {
  check_labels(probabilities, labels);
  const int64_t rows = dx.size(0), classes = dx.size(1);
  visit_floating(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = dloss.data<Wide>()[0] / static_cast<Wide>(rows);
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t c = 0; c < classes; ++c) {
        const auto target = static_cast<Wide>(target_of(c, labels.data<int64_t>()[n], classes, smoothing));
        const int64_t i = n * classes + c;
        dx.data<T>()[i] = static_cast<T>(scale * (probabilities.data<Wide>()[i] - target));
      }
  });
}

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_alike("mse", x, target);
  visit_floating(x.dtype(), "mse", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const Wide difference = x.data<T>()[i] - target.data<T>()[i];
      sum += difference * difference;
    }
    loss.data<Wide>()[0] = sum / static_cast<Wide>(x.numel());
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_alike("mse_backward", x, target);
  kernels::check_alike("mse_backward", x, dx);
  visit_floating(x.dtype(), "mse_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = dloss.data<Wide>()[0] * 2 / static_cast<Wide>(x.numel());
    for (int64_t i = 0; i < x.numel(); ++i)
      dx.data<T>()[i] = static_cast<T>(scale * (x.data<T>()[i] - target.data<T>()[i]));
  });
}

void binary_cross_entropy(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_binary_target(x, target);
  visit_floating(x.dtype(), "binary_cross_entropy", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const Wide logit = x.data<T>()[i];
      sum += std::max(logit, Wide(0)) - logit * target.data<Wide>()[i] + std::log1p(std::exp(-std::abs(logit)));
    }
    loss.data<Wide>()[0] = sum / static_cast<Wide>(x.numel());
  });
}

void binary_cross_entropy_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_binary_target(x, target);
  kernels::check_alike("binary_cross_entropy_backward", x, dx);
  visit_floating(x.dtype(), "binary_cross_entropy_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = dloss.data<Wide>()[0] / static_cast<Wide>(x.numel());
    for (int64_t i = 0; i < x.numel(); ++i) {
      // With the probability of the less likely side, sigmoid(x) - 1 has no cancellation either.
      const Wide logit = x.data<T>()[i], t = target.data<Wide>()[i], power = std::exp(-std::abs(logit)),
                 unlikely = power / (1 + power);
      dx.data<T>()[i] = static_cast<T>(scale * (logit > 0 ? (1 - t) - unlikely : unlikely - t));
    }
  });
}

void weighted_targets(const Tensor& weights, const Tensor& labels, const kernels::TargetOptions& options,
                      Tensor& targets, Tensor& mask, Tensor& row_weights) {
  const int64_t rows = labels.numel(), classes = weights.numel();
  visit_floating(weights.dtype(), "weighted_targets", [&]<class T>(T) {
    const T* weight = weights.data<T>();
    const auto everywhere = static_cast<wider_t<T>>(options.smoothing / static_cast<double>(classes)),
               extra = static_cast<wider_t<T>>(1 - options.smoothing);
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t label = labels.data<int64_t>()[n];
      const bool counts = label != options.ignored;
      if (counts) kernels::check_label(labels, n, classes);
      for (int64_t c = 0; c < classes; ++c) {
        const auto share = counts ? weight[c] * (everywhere + (c == label ? extra : 0)) : wider_t<T>(0);
        targets.data<T>()[n * classes + c] = static_cast<T>(share);
        mask.data<uint8_t>()[n * classes + c] = share != 0;
      }
      row_weights.data<T>()[n] = counts ? weight[label] : T(0);
    }
  });
}

}  // namespace

void provide_loss() {
  kernels::softmax.provide(Target::reference, softmax);
  kernels::softmax_backward.provide(Target::reference, softmax_backward);
  kernels::log_softmax.provide(Target::reference, log_softmax);
  kernels::log_softmax_backward.provide(Target::reference, log_softmax_backward);
  kernels::cross_entropy.provide(Target::reference, cross_entropy);
  kernels::cross_entropy_backward.provide(Target::reference, cross_entropy_backward);
  kernels::weighted_targets.provide(Target::reference, weighted_targets);
  kernels::mse.provide(Target::reference, mse);
  kernels::mse_backward.provide(Target::reference, mse_backward);
  kernels::binary_cross_entropy.provide(Target::reference, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.provide(Target::reference, binary_cross_entropy_backward);
  kernels::keep_loss.provide(Target::reference, kernels::keep_loss_on_cpu);
}

}  // namespace tern::reference

void tern::kernels::keep_loss_on_cpu(const Tensor& loss, const Tensor& squared, Tensor& rows, Tensor& next) {
  int64_t& row = *next.data<int64_t>();
  double* const kept = rows.data<double>() + 2 * row;
  kept[0] = loss.item();
  if (squared.defined()) kept[1] = squared.item();
  row = (row + 1) % rows.size(0);
}
