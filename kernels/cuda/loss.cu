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

template <class T>
struct CrossEntropy {
  const T* x;
  const int64_t* labels;
  float each, hit;  ///< the target: `each` everywhere, plus `hit` at the label
  int64_t rows;
  float *probabilities, *row_losses, *mean_loss;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    float* out = probabilities + row.begin();
    const float shift = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float sum = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    const float scale = 1 / sum,
                shifted_sum = each > 0 ? row.fold(0, Sum{}, [&](int64_t c) { return in[c] - shift; }) : 0;
    row.for_each([&](int64_t c) { out[c] = expf(float(in[c]) - shift) * scale; });
    if (row.exists && threadIdx.x % Group == 0) {
      const int64_t label = labels[row.number];
      float loss = NAN;
      if (label >= 0 && label < row.columns) loss = logf(sum) - hit * (float(in[label]) - shift);
      if (each > 0) loss -= each * shifted_sum;  // an impossible class has logit -inf, and 0 · inf is NaN
      row_losses[row.number] = loss;
    }
    if (is_last_block(gridDim.x, 0)) total(row_losses, rows, 1 / static_cast<double>(rows), mean_loss);
  }
};

template <class T>
struct CrossEntropyBackward {
  const float* probabilities;
  const int64_t* labels;
  float each, hit, rows;
  const float* dloss;
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    if (!row.exists) return;
    const float scale = *dloss / rows;
    const int64_t label = labels[row.number];
    row.for_each([&](int64_t c) {
      const float target = each + (c == label ? hit : 0);
      dx[row.begin() + c] = static_cast<T>(scale * (probabilities[row.begin() + c] - target));
    });
  }
};

void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities) {
  const int64_t rows = x.size(0), columns = x.size(1);
  check(labels.shape() == Shape{rows}, "cross_entropy: input ", x.shape(), " and labels ", labels.shape(),
        ", expected [N, C] and [N]");
  if (rows == 0) return kernels::fill.on(Target::cuda)(loss, NAN);  // the mean of nothing
  const Tensor row_losses = Tensor::empty({rows}, {.device = x.device()});
  visit_fast(x.dtype(), "cross_entropy", [&]<class T>(T) {
    for_each_row("cross_entropy", x.device(), rows, columns,
                 CrossEntropy<T>{.x = x.data<T>(),
                                 .labels = labels.data<int64_t>(),
                                 .each = static_cast<float>(smoothing / static_cast<double>(columns)),
                                 .hit = static_cast<float>(1 - smoothing),
                                 .rows = rows,
                                 .probabilities = probabilities.data<float>(),
                                 .row_losses = row_losses.data<float>(),
                                 .mean_loss = loss.data<float>()});
  });
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx) {
  const int64_t rows = dx.size(0), columns = dx.size(1);
  visit_fast(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    for_each_row("cross_entropy_backward", dx.device(), rows, columns,
                 CrossEntropyBackward<T>{.probabilities = probabilities.data<float>(),
                                         .labels = labels.data<int64_t>(),
                                         .each = static_cast<float>(smoothing / static_cast<double>(columns)),
                                         .hit = static_cast<float>(1 - smoothing),
                                         .rows = static_cast<float>(rows),
                                         .dloss = dloss.data<float>(),
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

template <class T>
struct LogisticLoss {
  const T* x;
  const float* target;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const auto logits = load_pack<T, Width>(x + at);
    const auto targets = load_pack<float, Width>(target + at);
    for (int j = 0; j < Width; ++j) {
      const auto logit = float(logits.values[j]);
      // fmaxf drops a NaN, but the product has it.
      sums[j] += fmaxf(logit, 0) - logit * targets.values[j] + log1pf(expf(-fabsf(logit)));
    }
  }
};

struct LogisticGradient {
  float factor;
  const float* dloss;
  __device__ float operator()(float x, float target) const {
    // With the probability of the less likely side, sigmoid(x) - 1 has no cancellation either.
    const float power = expf(-fabsf(x)), unlikely = power / (1 + power);
    return *dloss * factor * (x > 0 ? (1 - target) - unlikely : unlikely - target);
  }
};

void binary_cross_entropy(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_binary_target(x, target);
  visit_fast(x.dtype(), "binary_cross_entropy", [&]<class T>(T) {
    store_mean("binary_cross_entropy", x, LogisticLoss<T>{x.data<T>(), target.data<float>()}, loss);
  });
}

void binary_cross_entropy_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  constexpr const char* kOperation = "binary_cross_entropy_backward";
  kernels::check_binary_target(x, target);
  kernels::check_alike(kOperation, x, dx);
  if (dx.numel() == 0) return;
  const auto strides = [&](const Tensor& tensor) { return kernels::strides_in(tensor, dx.shape()); };
  const kernels::LoopNest<3> nest(dx.shape(), kernels::storage_order(dx), {strides(dx), strides(x), strides(target)});
  const LogisticGradient gradient{static_cast<float>(1 / static_cast<double>(x.numel())), dloss.data<float>()};
  visit_fast(x.dtype(), kOperation, [&]<class T>(T) {
    map_walk(kOperation, x.device(), Walk<3>(nest, kOperation), gradient, dx.data<T>(),
             static_cast<const T*>(x.data<T>()), static_cast<const float*>(target.data<float>()));
  });
}

__global__ void weighted_targets_kernel(const float* weights, const int64_t* labels, float everywhere, float extra,
                                        int64_t ignored, int64_t rows, int64_t classes, float* targets, uint8_t* mask,
                                        float* row_weights) {
  for (int64_t i = global_thread(); i < rows * classes; i += global_threads()) {
    const int64_t n = i / classes, c = i - n * classes, label = labels[n];
    const bool counts = label != ignored, valid = label >= 0 && label < classes;
    const float share = weights[c] * (everywhere + (c == label ? extra : 0));
    targets[i] = !counts ? 0 : valid ? share : NAN;
    mask[i] = counts && (!valid || share != 0);
    if (c == 0) row_weights[n] = !counts ? 0 : valid ? weights[label] : NAN;
  }
}

void weighted_targets(const Tensor& weights, const Tensor& labels, const kernels::TargetOptions& options,
                      Tensor& targets, Tensor& mask, Tensor& row_weights) {
  const int64_t rows = labels.numel(), classes = weights.numel();
  launch("weighted_targets", weights.device(), grid_over(rows * classes), weighted_targets_kernel,
         static_cast<const float*>(weights.data<float>()), static_cast<const int64_t*>(labels.data<int64_t>()),
         static_cast<float>(options.smoothing / static_cast<double>(classes)),
         static_cast<float>(1 - options.smoothing), options.ignored, rows, classes, targets.data<float>(),
         mask.data<uint8_t>(), row_weights.data<float>());
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
  kernels::weighted_targets.provide(Target::cuda, weighted_targets);
  kernels::mse.provide(Target::cuda, mse);
  kernels::mse_backward.provide(Target::cuda, mse_backward);
  kernels::binary_cross_entropy.provide(Target::cuda, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.provide(Target::cuda, binary_cross_entropy_backward);
  kernels::keep_loss.provide(Target::cuda, keep_loss);
}

}  // namespace tern::cuda
