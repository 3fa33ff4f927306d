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
double share_of(int64_t c, int64_t label, int64_t classes, double smoothing) {
  return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}
/// The same, times the weight of the class.
template <class Wide>
Wide target_of(const kernels::LabelTargets& targets, int64_t c, int64_t label, int64_t classes) {
  const auto share = static_cast<Wide>(share_of(c, label, classes, targets.smoothing));
  return targets.weights.defined() ? targets.weights.data<Wide>()[c] * share : share;
}

void check_targets(const Tensor& x, const kernels::LabelTargets& targets) {
  const Shape &labels = targets.labels.shape(), &weights = targets.weights.shape();
  check(x.rank() == 2 && labels == Shape{x.size(0)}, "cross_entropy: input ", x.shape(), " and labels ", labels,
        ", expected [N, C] and [N]");
  check(!targets.weights.defined() || weights == Shape{x.size(1)}, "cross_entropy: input ", x.shape(), " and weights ",
        weights, ", expected [N, C] and [C]");
}

// loss = -Σ target · log softmax(x), by the sum of the weights of the labels
void cross_entropy(const Tensor& x, const kernels::LabelTargets& targets, Tensor& loss, Tensor& divisor,
                   Tensor& probabilities) {
  check_targets(x, targets);
  const int64_t rows = x.size(0), classes = x.size(1);
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>(T) {
    using Wide = wider_t<T>;
    double weights = 0;
    Wide* const out = loss.data<Wide>();
    std::fill_n(out, loss.numel(), Wide(0));
    for (int64_t n = 0; n < rows; ++n) {
      const T* in = x.data<T>() + n * classes;
      Wide* const shares = probabilities.data<Wide>() + n * classes;
      const int64_t label = targets.labels.data<int64_t>()[n];
      if (label == targets.ignored) {
        std::fill_n(shares, classes, Wide(0));
        continue;
      }
      kernels::check_label(targets.labels, n, classes);
      weights += targets.weights.defined() ? targets.weights.data<Wide>()[label] : Wide(1);
      Wide& sum = loss.rank() == 1 ? out[n] : out[0];
      const Wide total = log_sum_exp(in, classes);
      for (int64_t c = 0; c < classes; ++c) {
        const Wide target = target_of<Wide>(targets, c, label, classes);
        if (target != 0) sum -= target * (in[c] - total);  // an impossible class has logit -inf, and 0 · inf is NaN
        shares[c] = std::exp(in[c] - total);
      }
    }
    if (!divisor.defined()) return;
    divisor.data<double>()[0] = weights;
    out[0] /= static_cast<Wide>(weights);
  });
}

void cross_entropy_backward(const Tensor& probabilities, const kernels::LabelTargets& targets, const Tensor& dloss,
                            const Tensor& divisor, Tensor& dx) {
  check_targets(probabilities, targets);
  const int64_t rows = dx.size(0), classes = dx.size(1);
  visit_floating(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const auto divided_by = static_cast<Wide>(divisor.defined() ? divisor.item() : 1);
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t label = targets.labels.data<int64_t>()[n];
      T* const out = dx.data<T>() + n * classes;
      if (label == targets.ignored) {
        std::fill_n(out, classes, T{});
        continue;
      }
      Wide sum = 1;
      if (targets.weights.defined()) {
        sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += target_of<Wide>(targets, c, label, classes);
      }
      const Wide scale = dloss.data<Wide>()[dloss.rank() == 1 ? n : 0] / divided_by;
      for (int64_t c = 0; c < classes; ++c)
        out[c] = static_cast<T>(
            scale * (probabilities.data<Wide>()[n * classes + c] * sum - target_of<Wide>(targets, c, label, classes)));
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
    const bool is_mean = loss.rank() == 0;
    Wide sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const Wide logit = x.data<T>()[i];
      const Wide term =
          std::max(logit, Wide(0)) - logit * target.data<Wide>()[i] + std::log1p(std::exp(-std::abs(logit)));
      if (is_mean)
        sum += term;
      else
        loss.data<Wide>()[i] = term;
    }
    if (is_mean) loss.data<Wide>()[0] = sum / static_cast<Wide>(x.numel());
  });
}

void binary_cross_entropy_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_binary_target(x, target);
  kernels::check_alike("binary_cross_entropy_backward", x, dx);
  visit_floating(x.dtype(), "binary_cross_entropy_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const bool is_mean = dloss.rank() == 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const Wide scale = is_mean ? dloss.data<Wide>()[0] / static_cast<Wide>(x.numel()) : dloss.data<Wide>()[i];
      // With the probability of the less likely side, sigmoid(x) - 1 has no cancellation either.
      const Wide logit = x.data<T>()[i], t = target.data<Wide>()[i], power = std::exp(-std::abs(logit)),
                 unlikely = power / (1 + power);
      dx.data<T>()[i] = static_cast<T>(scale * (logit > 0 ? (1 - t) - unlikely : unlikely - t));
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
