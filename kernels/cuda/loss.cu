#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// Subtracts the largest element of each row first, so that nothing overflows.
template <class T, bool Log>
struct Softmax {
  const T* x;
  T* y;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    T* out = y + row.begin();
    const float shift = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float total = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    const float scale = 1 / total, offset = shift + logf(total);
    row.for_each(
        [&](int64_t c) { out[c] = static_cast<T>(Log ? float(in[c]) - offset : expf(float(in[c]) - shift) * scale); });
  }
};

/// dx = y · (dy - Σ y·dy); for the logarithm, dx = dy - exp(y) · Σ dy.
template <class T, bool Log>
struct SoftmaxBackward {
  const T *y, *dy;
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T *out = y + row.begin(), *d_out = dy + row.begin();
    T* d_in = dx + row.begin();
    const float sum =
        row.fold(0, Sum{}, [&](int64_t c) { return Log ? float(d_out[c]) : float(out[c]) * float(d_out[c]); });
    row.for_each([&](int64_t c) {
      const float value = float(out[c]), d = float(d_out[c]);
      d_in[c] = static_cast<T>(Log ? d - expf(value) * sum : value * (d - sum));
    });
  }
};

template <bool Log>
void softmax_rows(const char* operation, const Tensor& x, Tensor& y) {
  kernels::check_alike(operation, x, y);
  if (x.numel() == 0) return;
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    for_each_row(operation, x.device(), x.numel() / x.size(-1), x.size(-1), Softmax<T, Log>{x.data<T>(), y.data<T>()});
  });
}

template <bool Log>
void softmax_rows_backward(const char* operation, const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike(operation, y, dy);
  kernels::check_alike(operation, y, dx);
  if (y.numel() == 0) return;
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    for_each_row(operation, y.device(), y.numel() / y.size(-1), y.size(-1),
                 SoftmaxBackward<T, Log>{y.data<T>(), dy.data<T>(), dx.data<T>()});
  });
}

void softmax(const Tensor& x, Tensor& y) { softmax_rows<false>("softmax", x, y); }
void log_softmax(const Tensor& x, Tensor& y) { softmax_rows<true>("log_softmax", x, y); }
void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  softmax_rows_backward<false>("softmax_backward", y, dy, dx);
}
void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  softmax_rows_backward<true>("log_softmax_backward", y, dy, dx);
}

/// Targets as kernels read them. The target of class c is weights[c] · each; at the label, weights[c] · (each + hit).
struct Targets {
  Targets(const kernels::LabelTargets& targets, int64_t columns)
      : labels(targets.labels.data<int64_t>()),
        weights(targets.weights.defined() ? targets.weights.data<float>() : nullptr),
        each(static_cast<float>(targets.smoothing / static_cast<double>(columns))),
        hit(static_cast<float>(1 - targets.smoothing)),
        ignores(targets.ignored.has_value()),
        ignored(targets.ignored.value_or(0)),
        classes(columns) {}
  __device__ bool counts(int64_t row) const { return !ignores || labels[row] != ignored; }
  __device__ bool is_class(int64_t label) const { return label >= 0 && label < classes; }
  __device__ float weight(int64_t label) const {
    if (weights == nullptr) return 1;
    return is_class(label) ? weights[label] : NAN;
  }
  /// The sum of weight · `each` over the classes, if there are weights. All threads of the block must call it together.
  template <int Group>
  __device__ float spread(const Row<Group>& row) const {
    return weights != nullptr && each > 0 ? each * row.fold(0, Sum{}, [&](int64_t c) { return weights[c]; }) : 0;
  }

  const int64_t* labels;
  const float* weights;  ///< null: all are 1
  float each, hit;
  bool ignores;
  int64_t ignored, classes;
};

template <class T>
struct CrossEntropy {
  const T* x;
  Targets targets;
  int64_t rows;
  float *probabilities, *row_losses;
  float* loss;      ///< of all rows, or null
  double* divisor;  ///< null: the loss is a sum
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    float* out = probabilities + row.begin();
    const Row<Group> used{row.number, row.columns, row.exists && targets.counts(row.number)};
    const float shift = used.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float sum = used.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    const float scale = 1 / sum, spread = targets.spread(used), each = targets.each, *weights = targets.weights;
    // An impossible class has logit -inf, and 0 · inf is NaN.
    const auto shifted = [&](int64_t c) {
      const float weight = weights == nullptr ? 1 : weights[c];
      return weight == 0 ? 0 : weight * (float(in[c]) - shift);
    };
    const float shifted_sum = each > 0 ? used.fold(0, Sum{}, shifted) : 0;
    row.for_each([&](int64_t c) { out[c] = used.exists ? expf(float(in[c]) - shift) * scale : 0; });
    if (row.exists && threadIdx.x % Group == 0) {
      float row_loss = 0;
      if (used.exists) {
        const int64_t label = targets.labels[row.number];
        const float share = targets.hit * targets.weight(label);
        row_loss = targets.is_class(label) ? logf(sum) : NAN;
        if (weights != nullptr) row_loss *= share + spread;
        if (targets.is_class(label) && share != 0) row_loss -= share * (float(in[label]) - shift);
        if (each > 0) row_loss -= each * shifted_sum;
      }
      row_losses[row.number] = row_loss;
    }
    if (loss != nullptr && is_last_block(gridDim.x, 0)) finish();
  }

  /// The loss of all rows, by all threads of one block.
  __device__ void finish() const {
    double by = 1;
    if (divisor != nullptr) {
      by = static_cast<double>(rows);
      if (targets.ignores || targets.weights != nullptr) {
        by = 0;
        for (int64_t row = threadIdx.x; row < rows; row += kThreads)
          if (targets.counts(row)) by += targets.weight(targets.labels[row]);
        by = fold_group<kThreads>(by, Sum{});
      }
      if (threadIdx.x == 0) *divisor = by;
    }
    total(row_losses, rows, 1 / by, loss);
  }
};

template <class T>
struct CrossEntropyBackward {
  const float* probabilities;
  Targets targets;
  const float* dloss;
  bool by_row;            ///< dloss has one element for each row
  const double* divisor;  ///< null: 1
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const float spread = targets.spread(row);
    if (!row.exists) return;
    T* const out = dx + row.begin();
    if (!targets.counts(row.number)) return row.for_each([&](int64_t c) { out[c] = static_cast<T>(0.0f); });
    float scale = dloss[by_row ? row.number : 0];
    if (divisor != nullptr) scale /= static_cast<float>(*divisor);
    const int64_t label = targets.labels[row.number];
    const float *from = probabilities + row.begin(), *weights = targets.weights;
    const float sum = weights != nullptr        ? targets.hit * targets.weight(label) + spread
                      : targets.is_class(label) ? 1
                                                : NAN;
    row.for_each([&](int64_t c) {
      const float share = targets.each + (c == label ? targets.hit : 0),
                  target = weights == nullptr ? share : weights[c] * share;
      out[c] = static_cast<T>(scale * (from[c] * sum - target));
    });
  }
};

void cross_entropy(const Tensor& x, const kernels::LabelTargets& targets, Tensor& loss, Tensor& divisor,
                   Tensor& probabilities) {
  const int64_t rows = x.size(0), columns = x.size(1);
  check(targets.labels.shape() == Shape{rows}, "cross_entropy: input ", x.shape(), " and labels ",
        targets.labels.shape(), ", expected [N, C] and [N]");
  const bool by_row = loss.rank() == 1;
  if (rows == 0) {
    if (divisor.defined()) kernels::fill.on(Target::cuda)(divisor, 0);
    if (!by_row) kernels::fill.on(Target::cuda)(loss, divisor.defined() ? NAN : 0);  // the mean of nothing
    return;
  }
  const Tensor row_losses = by_row ? loss : Tensor::empty({rows}, {.device = x.device()});
  visit_fast(x.dtype(), "cross_entropy", [&]<class T>(T) {
    for_each_row("cross_entropy", x.device(), rows, columns,
                 CrossEntropy<T>{.x = x.data<T>(),
                                 .targets = Targets(targets, columns),
                                 .rows = rows,
                                 .probabilities = probabilities.data<float>(),
                                 .row_losses = row_losses.data<float>(),
                                 .loss = by_row ? nullptr : loss.data<float>(),
                                 .divisor = divisor.defined() ? divisor.data<double>() : nullptr});
  });
}

void cross_entropy_backward(const Tensor& probabilities, const kernels::LabelTargets& targets, const Tensor& dloss,
                            const Tensor& divisor, Tensor& dx) {
  const int64_t rows = dx.size(0), columns = dx.size(1);
  if (rows == 0) return;
  visit_fast(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    for_each_row("cross_entropy_backward", dx.device(), rows, columns,
                 CrossEntropyBackward<T>{.probabilities = probabilities.data<float>(),
                                         .targets = Targets(targets, columns),
                                         .dloss = dloss.data<float>(),
                                         .by_row = dloss.rank() == 1,
                                         .divisor = divisor.defined() ? divisor.data<double>() : nullptr,
                                         .dx = dx.data<T>()});
  });
}

template <class T>
struct SquaredDistance {
  const T *x, *target;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const auto a = load_pack<T, Width>(x + at), b = load_pack<T, Width>(target + at);
    for (int j = 0; j < Width; ++j) {
      const float difference = float(a.values[j]) - float(b.values[j]);
      sums[j] += difference * difference;
    }
  }
};

struct StoreMean {
  double count;
  float* loss;
  __device__ void operator()(int64_t, const double* totals) const { *loss = static_cast<float>(totals[0] / count); }
};

struct ErrorGradient {
  float factor;
  const float* dloss;
  __device__ float operator()(float x, float target) const { return *dloss * factor * (x - target); }
};

/// Stores the mean of what `each` adds over the elements of x.
template <class Each>
void store_mean(const char* operation, const Tensor& x, Each each, Tensor& loss) {
  Shape one = x.shape();
  for (int d = 0; d < one.rank(); ++d) one[d] = 1;
  sum<1, 1>(operation, x.device(), Summation(operation, x, Tensor::empty(one)), false, each,
            StoreMean{static_cast<double>(x.numel()), loss.data<float>()});
}

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_alike("mse", x, target);
  visit_fast(x.dtype(), "mse", [&]<class T>(T) {
    store_mean("mse", x, SquaredDistance<T>{x.data<T>(), target.data<T>()}, loss);
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_alike("mse_backward", x, target);
  map("mse_backward", ErrorGradient{static_cast<float>(2 / static_cast<double>(x.numel())), dloss.data<float>()}, dx, x,
      target);
}

struct LogisticLoss {
  __device__ float operator()(float x, float target) const {
    // fmaxf drops a NaN, but the product has it.
    return fmaxf(x, 0) - x * target + log1pf(expf(-fabsf(x)));
  }
};

template <class T>
struct LogisticSum {
  const T* x;
  const float* target;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const auto logits = load_pack<T, Width>(x + at);
    const auto targets = load_pack<float, Width>(target + at);
    for (int j = 0; j < Width; ++j) sums[j] += LogisticLoss{}(float(logits.values[j]), targets.values[j]);
  }
};

struct LogisticGradient {
  float factor;
  __device__ float operator()(float x, float target, float dloss) const {
    // With the probability of the less likely side, sigmoid(x) - 1 has no cancellation either.
    const float power = expf(-fabsf(x)), unlikely = power / (1 + power);
    return dloss * factor * (x > 0 ? (1 - target) - unlikely : unlikely - target);
  }
};

void binary_cross_entropy(const Tensor& x, const Tensor& target, Tensor& loss) {
  constexpr const char* kOperation = "binary_cross_entropy";
  kernels::check_binary_target(x, target);
  visit_fast(x.dtype(), kOperation, [&]<class T>(T) {
    const T* logits = x.data<T>();
    const float* targets = target.data<float>();
    if (loss.rank() == 0) return store_mean(kOperation, x, LogisticSum<T>{logits, targets}, loss);
    if (x.numel() == 0) return;
    map_walk(kOperation, x.device(), straight<3>(kOperation, x.numel()), LogisticLoss{}, loss.data<float>(), logits,
             targets);
  });
}

void binary_cross_entropy_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  constexpr const char* kOperation = "binary_cross_entropy_backward";
  kernels::check_binary_target(x, target);
  kernels::check_alike(kOperation, x, dx);
  if (dx.numel() == 0) return;
  const auto strides = [&](const Tensor& tensor) { return kernels::strides_in(tensor, dx.shape()); };
  const kernels::LoopNest<4> nest(dx.shape(), kernels::storage_order(dx),
                                  {strides(dx), strides(x), strides(target), strides(dloss)});
  const LogisticGradient gradient{dloss.rank() == 0 ? static_cast<float>(1 / static_cast<double>(x.numel())) : 1};
  visit_fast(x.dtype(), kOperation, [&]<class T>(T) {
    map_walk(kOperation, x.device(), Walk<4>(nest, kOperation), gradient, dx.data<T>(),
             static_cast<const T*>(x.data<T>()), static_cast<const float*>(target.data<float>()),
             static_cast<const float*>(dloss.data<float>()));
  });
}

/// One thread.
template <class T>
__global__ void keep_loss_kernel(const T* loss, const double* squared_norm, int64_t rows, double* kept, int64_t* next) {
  const int64_t row = *next;
  kept[2 * row] = float(*loss);
  if (squared_norm != nullptr) kept[2 * row + 1] = *squared_norm;
  *next = row + 1 < rows ? row + 1 : 0;
}

void keep_loss(const Tensor& loss, const Tensor& squared_norm, Tensor& rows, Tensor& next) {
  const double* norm = squared_norm.defined() ? squared_norm.data<double>() : nullptr;
  visit_fast(loss.dtype(), "keep_loss", [&]<class T>(T) {
    launch("keep_loss", rows.device(), {.blocks = 1, .threads = 1}, keep_loss_kernel<T>, loss.data<T>(), norm,
           rows.size(0), rows.data<double>(), next.data<int64_t>());
  });
}

}  // namespace

void provide_loss() {
  kernels::softmax.provide(Target::cuda, softmax);
  kernels::softmax_backward.provide(Target::cuda, softmax_backward);
  kernels::log_softmax.provide(Target::cuda, log_softmax);
  kernels::log_softmax_backward.provide(Target::cuda, log_softmax_backward);
  kernels::cross_entropy.provide(Target::cuda, cross_entropy);
  kernels::cross_entropy_backward.provide(Target::cuda, cross_entropy_backward);
  kernels::mse.provide(Target::cuda, mse);
  kernels::mse_backward.provide(Target::cuda, mse_backward);
  kernels::binary_cross_entropy.provide(Target::cuda, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.provide(Target::cuda, binary_cross_entropy_backward);
  kernels::keep_loss.provide(Target::cuda, keep_loss);
}

}  // namespace tern::cuda
