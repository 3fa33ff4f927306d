#include <algorithm>
#include <cmath>
#include <optional>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// Calls body(row) for every row of a matrix with `columns` columns, vectorised and on all threads.
template <class Body>
void for_each_row(int64_t rows, int64_t columns, Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 8 * columns));
  parallel_vectorized(rows, grain, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) body(row);
  });
}

template <class T>
float row_maximum(const T* x, int64_t columns) {
  float maximum = load(x);
#pragma omp simd reduction(max : maximum)
  for (int64_t j = 0; j < columns; ++j) maximum = std::max(maximum, load(x + j));
  return maximum;
}

/// Writes e^(x - shift) to y and returns the sum.
template <class T, class U>
float exponentials(const T* x, float shift, int64_t columns, U* y) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) {
    const float e = exponential(load(x + j) - shift);
    store(y + j, e);
    sum += e;
  }
  return sum;
}

/// Σ e^(x - shift) over a row, in f32.
template <class T>
float exponential_sum(const T* x, float shift, int64_t columns) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) sum += exponential(load(x + j) - shift);
  return sum;
}

int64_t row_count(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(-1)); }

void softmax(const Tensor& x, Tensor& y) {
  visit_fast(x.dtype(), "softmax", [&]<class T>(T) {
    const int64_t columns = x.size(-1);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for_each_row(row_count(x), columns, [=](int64_t row) {
      const T* from = in + row * columns;
      T* to = out + row * columns;
      const float shift = row_maximum(from, columns);
      const float scale = 1.0f / exponential_sum(from, shift, columns);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(to + j, exponential(load(from + j) - shift) * scale);
    });
  });
}

void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  visit_fast(y.dtype(), "softmax_backward", [&]<class T>(T) {
    const int64_t columns = y.size(-1);
    const T *value = y.data<T>(), *in = dy.data<T>();
    T* out = dx.data<T>();
    for_each_row(row_count(y), columns, [=](int64_t row) {
      const T *p = value + row * columns, *d = in + row * columns;
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t j = 0; j < columns; ++j) dot += load(p + j) * load(d + j);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(out + row * columns + j, load(p + j) * (load(d + j) - dot));
    });
  });
}

void log_softmax(const Tensor& x, Tensor& y) {
  visit_fast(x.dtype(), "log_softmax", [&]<class T>(T) {
    const int64_t columns = x.size(-1);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for_each_row(row_count(x), columns, [=](int64_t row) {
      const T* from = in + row * columns;
      const float shift = row_maximum(from, columns);
      const float log_sum = std::log(exponential_sum(from, shift, columns));
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(out + row * columns + j, (load(from + j) - shift) - log_sum);
    });
  });
}

void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  visit_fast(y.dtype(), "log_softmax_backward", [&]<class T>(T) {
    const int64_t columns = y.size(-1);
    const T *value = y.data<T>(), *in = dy.data<T>();
    T* out = dx.data<T>();
    for_each_row(row_count(y), columns, [=](int64_t row) {
      const T *p = value + row * columns, *d = in + row * columns;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < columns; ++j) sum += load(d + j);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j)
        store(out + row * columns + j, load(d + j) - exponential(load(p + j)) * sum);
    });
  });
}

/// Σ weight · (x - shift) over a row, in f32. A class without weight may be impossible: 0 · inf is NaN.
template <class T>
float weighted_sum(const T* x, const float* weights, float shift, int64_t columns) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) sum += weights[j] == 0.0f ? 0.0f : weights[j] * (load(x + j) - shift);
  return sum;
}

/// Targets as the loops read them. The target of class c is weights[c] · each; at the label, weights[c] · (each + hit).
struct Targets {
  Targets(const kernels::LabelTargets& targets, int64_t classes)
      : labels(targets.labels.data<int64_t>()),
        weights(targets.weights.defined() ? targets.weights.data<float>() : nullptr),
        each(static_cast<float>(targets.smoothing / static_cast<double>(classes))),
        hit(static_cast<float>(1 - targets.smoothing)),
        ignored(targets.ignored) {
    if (weights == nullptr || each == 0) return;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += weights[c];
    spread = static_cast<float>(sum * each);
  }
  bool counts(int64_t row) const { return labels[row] != ignored; }

  const int64_t* labels;
  const float* weights;  ///< null: all are 1
  float each, hit;
  float spread = 0;  ///< the sum of weight · `each`, if there are weights
  std::optional<int64_t> ignored;
};

void cross_entropy(const Tensor& x, const kernels::LabelTargets& targets, Tensor& loss, Tensor& divisor,
                   Tensor& probabilities) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const Targets target(targets, columns);
  double weights = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!target.counts(row)) continue;
    kernels::check_label(targets.labels, row, columns);
    weights += target.weights == nullptr ? 1 : target.weights[target.labels[row]];
  }
  const Tensor row_losses = loss.rank() == 1 ? loss : Tensor::empty({rows});
  visit_fast(x.dtype(), "cross_entropy", [&]<class T>(T) {
    const T* in = x.data<T>();
    float *out = probabilities.data<float>(), *losses = row_losses.data<float>();
    for_each_row(rows, columns, [=](int64_t row) {
      const T* from = in + row * columns;
      float* to = out + row * columns;
      if (!target.counts(row)) {
        std::fill_n(to, columns, 0.0f);
        losses[row] = 0;
        return;
      }
      const float shift = row_maximum(from, columns);
      const float sum = exponentials(from, shift, columns, to), scale = 1.0f / sum;
      float shifted_sum = 0;
#pragma omp simd reduction(+ : shifted_sum)
      for (int64_t j = 0; j < columns; ++j) {
        to[j] *= scale;
        shifted_sum += load(from + j) - shift;
      }
      const int64_t label = target.labels[row];
      float row_loss = std::log(sum), share = target.hit;
      if (target.weights != nullptr) {
        share *= target.weights[label];
        row_loss *= share + target.spread;
        if (target.each > 0) shifted_sum = weighted_sum(from, target.weights, shift, columns);
      }
      // An impossible class has logit -inf, and 0 · inf is NaN.
      if (share != 0) row_loss -= share * (load(from + label) - shift);
      if (target.each > 0) row_loss -= target.each * shifted_sum;
      losses[row] = row_loss;
    });
  });
  if (loss.rank() == 1) return;
  double total = 0;
  for (float row_loss : row_losses.span<float>()) total += row_loss;
  if (divisor.defined()) *divisor.data<double>() = weights;
  *loss.data<float>() = static_cast<float>(divisor.defined() ? total / weights : total);
}

void cross_entropy_backward(const Tensor& probabilities, const kernels::LabelTargets& targets, const Tensor& dloss,
                            const Tensor& divisor, Tensor& dx) {
  visit_fast(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    const int64_t rows = probabilities.size(0), columns = probabilities.size(1);
    const float *p = probabilities.data<float>(), *dlosses = dloss.data<float>();
    const Targets target(targets, columns);
    T* out = dx.data<T>();
    const bool by_row = dloss.rank() == 1;
    const double divided_by = divisor.defined() ? divisor.item() : 1;
    for_each_row(rows, columns, [=](int64_t row) {
      const float* from = p + row * columns;
      T* to = out + row * columns;
      if (!target.counts(row)) {
        std::fill_n(to, columns, T{});
        return;
      }
      const auto scale = static_cast<float>(dlosses[by_row ? row : 0] / divided_by);
      const float each = target.each, hit = target.hit, *weights = target.weights;
      const int64_t label = target.labels[row];
      if (weights == nullptr) {
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) store(to + j, scale * (from[j] - each));
        store(to + label, scale * (from[label] - each - hit));
        return;
      }
      const float share = hit * weights[label], sum = share + target.spread;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(to + j, scale * (from[j] * sum - weights[j] * each));
      store(to + label, scale * (from[label] * sum - weights[label] * each - share));
    });
  });
}

/// The mean of term(i) over i in [0, count): f32 sums of blocks, then their sum in f64. It does not depend on the
/// number of threads.
template <class Term>
float mean_of(int64_t count, Term term) {
  constexpr int64_t kBlock = 4096;
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const Tensor partials = Tensor::empty({blocks}, {.dtype = DType::f64});
  double* partial = partials.data<double>();
  parallel_vectorized(blocks, kGrain / kBlock, [=](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) sum += term(i);
      partial[block] = sum;
    }
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += partial[block];
  return static_cast<float>(total / static_cast<double>(count));
}

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  const Tensor aim = target.to(x.format());
  visit_fast(x.dtype(), "mse", [&]<class T>(T) {
    const T *in = x.data<T>(), *wanted = aim.data<T>();
    *loss.data<float>() = mean_of(x.numel(), [=](int64_t i) {
      const float distance = load(in + i) - load(wanted + i);
      return distance * distance;
    });
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  const auto factor = static_cast<float>(dloss.item() * 2 / static_cast<double>(x.numel()));
  map("mse_backward", x, target, dx, [=](float value, float wanted) { return factor * (value - wanted); });
}

void binary_cross_entropy(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_binary_target(x, target);
  visit_fast(x.dtype(), "binary_cross_entropy", [&]<class T>(T) {
    const T* in = x.data<T>();
    const float* wanted = target.data<float>();
    const auto term = [=](int64_t i) {
      const float logit = load(in + i), distance = logit < 0.0f ? -logit : logit;
      // If the logit is NaN, so is its product.
      return (logit > 0.0f ? logit : 0.0f) - logit * wanted[i] + logarithm_of_one_plus(exponential(-distance));
    };
    float* out = loss.data<float>();
    if (loss.rank() == 0) {
      *out = mean_of(x.numel(), term);
      return;
    }
    parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) out[i] = term(i);
    });
  });
}

void binary_cross_entropy_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_binary_target(x, target);
  kernels::check_alike("binary_cross_entropy_backward", x, dx);
  visit_fast(x.dtype(), "binary_cross_entropy_backward", [&]<class T>(T) {
    const T* in = x.data<T>();
    const float* wanted = target.data<float>();
    T* out = dx.data<T>();
    const auto run = [&](auto scale) {
      parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
        for (int64_t i = first; i < last; ++i) {
          // With the probability of the less likely side, sigmoid(x) - 1 has no cancellation either.
          const float logit = load(in + i), power = exponential(logit < 0.0f ? logit : -logit),
                      unlikely = power / (1.0f + power);
          store(out + i, scale(i) * (logit > 0.0f ? (1.0f - wanted[i]) - unlikely : unlikely - wanted[i]));
        }
      });
    };
    const float* dlosses = dloss.data<float>();
    if (dloss.rank() == 0)
      run([scale = static_cast<float>(*dlosses / static_cast<double>(x.numel()))](int64_t) { return scale; });
    else
      run([=](int64_t i) { return dlosses[i]; });
  });
}

}  // namespace

void provide_loss() {
  kernels::softmax.provide(Target::cpu, softmax);
  kernels::softmax_backward.provide(Target::cpu, softmax_backward);
  kernels::log_softmax.provide(Target::cpu, log_softmax);
  kernels::log_softmax_backward.provide(Target::cpu, log_softmax_backward);
  kernels::cross_entropy.provide(Target::cpu, cross_entropy);
  kernels::cross_entropy_backward.provide(Target::cpu, cross_entropy_backward);
  kernels::mse.provide(Target::cpu, mse);
  kernels::mse_backward.provide(Target::cpu, mse_backward);
  kernels::binary_cross_entropy.provide(Target::cpu, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.provide(Target::cpu, binary_cross_entropy_backward);
  kernels::keep_loss.provide(Target::cpu, kernels::keep_loss_on_cpu);
}

}  // namespace tern::cpu
