#include "tern/kernels/ctc.h"

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// log(e^a + e^b + e^c)
__device__ float log_sum(float a, float b, float c) {
  const float largest = fmaxf(a, fmaxf(b, c)), shift = largest == -INFINITY ? 0 : largest;
  return shift + logf(expf(a - shift) + expf(b - shift) + expf(c - shift));
}

/// The arguments of the kernel. A plain value.
template <class T>
struct Batch {
  const T* log_probabilities;
  const int64_t *labels, *input_lengths, *label_lengths;
  int64_t most_frames, batch, columns, most_labels, blank;
  bool zero_infinity;
  float *losses, *shares, *alphas, *rows;  ///< alphas: [N, T, states]; rows: [N, 2, states]

  __device__ int64_t states() const { return 2 * most_labels + 1; }
};

/// One sequence, for the threads of a block: each has some of the states, then some of the classes.
template <class T>
struct Sequence {
  __device__ Sequence(const Batch<T>& batch, int64_t n)
      : frames(batch.input_lengths[n]),
        count(batch.label_lengths[n]),
        states(2 * count + 1),
        stride(batch.batch * batch.columns),
        columns(batch.columns),
        blank(batch.blank),
        labels(batch.labels + n * batch.most_labels),
        log_probabilities(batch.log_probabilities + n * columns),
        shares(batch.shares + n * columns),
        alphas(batch.alphas + n * batch.most_frames * batch.states()),
        through(batch.rows + 2 * n * batch.states()),
        betas(through + batch.states()) {}

  __device__ int64_t class_of(int64_t s) const { return s % 2 == 1 ? labels[s / 2] : blank; }
  __device__ float emission(int64_t t, int64_t s) const { return float(log_probabilities[t * stride + class_of(s)]); }
  /// Whether a path may go from state s - 2 to s, over the blank between two labels that differ.
  __device__ bool skips(int64_t s) const { return s >= 3 && s % 2 == 1 && class_of(s) != class_of(s - 2); }

  template <class Visit>
  __device__ void for_each_state(Visit visit) const {
    for (int64_t s = threadIdx.x; s < states; s += kThreads) visit(s);
  }
  /// Combines value(s) over the states. All threads get the result.
  template <class Fold, class Value>
  __device__ float fold(float first, Fold fold, Value value) const {
    float result = first;
    for_each_state([&](int64_t s) { result = fold(result, value(s)); });
    return fold_group<kThreads>(result, fold);
  }
  /// Subtracts the largest element of a row, and returns it; 0 if all are impossible.
  __device__ float normalize(float* row) const {
    __syncthreads();
    const float largest = fold(-INFINITY, Maximum{}, [&](int64_t s) { return row[s]; });
    const float shift = largest == -INFINITY ? 0 : largest;
    for_each_state([&](int64_t s) { row[s] -= shift; });
    __syncthreads();
    return shift;
  }

  int64_t frames, count, states, stride, columns, blank;
  const int64_t* labels;
  const T* log_probabilities;
  float *shares, *alphas, *through, *betas;
};

/// Whether the lengths and labels of the sequence are in range.
template <class T>
__device__ bool in_range(const Sequence<T>& of, const Batch<T>& batch) {
  if (of.frames < 0 || of.frames > batch.most_frames || of.count < 0 || of.count > batch.most_labels) return false;
  float outside = 0;
  for (int64_t i = threadIdx.x; i < of.count; i += kThreads) {
    const int64_t label = of.labels[i];
    if (label < 0 || label >= of.columns || label == of.blank) outside = 1;
  }
  return fold_group<kThreads>(outside, Maximum{}) == 0;
}

/// Fills `alphas`, in each frame relative to its largest one, and returns log p.
template <class T>
__device__ double forward(const Sequence<T>& of) {
  double total = 0;
  for (int64_t t = 0; t < of.frames; ++t) {
    float* alpha = of.alphas + t * of.states;
    const float* before = alpha - of.states;
    of.for_each_state([&](int64_t s) {
      float sum = s <= 1 ? 0 : -INFINITY;
      if (t > 0) sum = log_sum(before[s], s >= 1 ? before[s - 1] : -INFINITY, of.skips(s) ? before[s - 2] : -INFINITY);
      alpha[s] = sum + of.emission(t, s);
    });
    total += of.normalize(alpha);
  }
  if (of.frames == 0) return of.count == 0 ? 0 : -INFINITY;
  const float* last = of.alphas + of.frames * of.states - 1;
  return total + log_sum(last[0], of.count > 0 ? last[-1] : -INFINITY, -INFINITY);
}

/// The shares of one frame. Each thread sums the states of its classes in their order, so the sums are the same always.
template <class T>
__device__ void write_shares(const Sequence<T>& of, int64_t t) {
  float* alpha = of.alphas + t * of.states;  // read for the last time
  of.for_each_state([&](int64_t s) { alpha[s] += of.betas[s]; });
  of.normalize(alpha);
  of.for_each_state([&](int64_t s) { alpha[s] = expf(alpha[s]); });
  __syncthreads();
  const float sum = of.fold(0, Sum{}, [&](int64_t s) { return alpha[s]; });
  for (int64_t c = threadIdx.x; c < of.columns; c += kThreads) {
    float share = 0;
    for (int64_t s = 0; s < of.states; ++s)
      if (of.class_of(s) == c) share += alpha[s];
    of.shares[t * of.stride + c] = share / sum;
  }
}

template <class T>
__device__ void backward(const Sequence<T>& of) {
  for (int64_t t = of.frames; t-- > 0;) {
    of.for_each_state([&](int64_t s) {
      const auto next = [&](int64_t to) { return to < of.states ? of.through[to] : -INFINITY; };
      if (t + 1 == of.frames)
        of.betas[s] = s + 2 >= of.states ? 0 : -INFINITY;
      else
        of.betas[s] = log_sum(next(s), next(s + 1), s + 2 < of.states && of.skips(s + 2) ? next(s + 2) : -INFINITY);
    });
    of.normalize(of.betas);
    write_shares(of, t);
    of.for_each_state([&](int64_t s) { of.through[s] = of.betas[s] + of.emission(t, s); });
    __syncthreads();
  }
}

template <class T>
__device__ void fill_shares(const Sequence<T>& of, int64_t first, int64_t last, float value) {
  for (int64_t t = first; t < last; ++t)
    for (int64_t c = threadIdx.x; c < of.columns; c += kThreads) of.shares[t * of.stride + c] = value;
}

template <class T>
__global__ void ctc_kernel(Batch<T> batch) {
  const int64_t n = blockIdx.x;
  const Sequence<T> sequence(batch, n);
  const bool exists = in_range(sequence, batch);
  const double total = exists ? forward(sequence) : NAN;
  const bool possible = total != -INFINITY, zero = !possible && batch.zero_infinity;
  if (threadIdx.x == 0) batch.losses[n] = zero ? 0 : static_cast<float>(-total);
  if (exists && possible)
    backward(sequence);
  else
    fill_shares(sequence, 0, exists ? sequence.frames : batch.most_frames, zero ? 0 : NAN);
  if (exists) fill_shares(sequence, sequence.frames, batch.most_frames, 0);
}

void ctc_loss(const Tensor& log_probabilities, const kernels::CtcTargets& targets, Tensor& losses, Tensor& shares) {
  kernels::check_ctc_shapes(log_probabilities, targets);
  const int64_t frames = log_probabilities.size(0), batch = log_probabilities.size(1),
                states = kernels::ctc_states(targets);
  const TensorOptions options{DType::f32, log_probabilities.device()};
  const Tensor alphas = Tensor::empty({batch, frames, states}, options),
               rows = Tensor::empty({batch, 2, states}, options);
  visit_fast(log_probabilities.dtype(), "ctc_loss", [&]<class T>(T) {
    launch("ctc_loss", log_probabilities.device(), Grid{.blocks = dim3(static_cast<unsigned>(batch))}, ctc_kernel<T>,
           Batch<T>{.log_probabilities = log_probabilities.data<T>(),
                    .labels = targets.labels.data<int64_t>(),
                    .input_lengths = targets.input_lengths.data<int64_t>(),
                    .label_lengths = targets.label_lengths.data<int64_t>(),
                    .most_frames = frames,
                    .batch = batch,
                    .columns = log_probabilities.size(2),
                    .most_labels = targets.labels.size(1),
                    .blank = targets.blank,
                    .zero_infinity = targets.zero_infinity,
                    .losses = losses.data<float>(),
                    .shares = shares.data<float>(),
                    .alphas = alphas.data<float>(),
                    .rows = rows.data<float>()});
  });
}

}  // namespace

void provide_ctc() { kernels::ctc_loss.provide(Target::cuda, ctc_loss); }

}  // namespace tern::cuda
