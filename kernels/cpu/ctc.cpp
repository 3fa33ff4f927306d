#include "tern/kernels/ctc.h"

#include <limits>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// log(e^a + e^b + e^c) without branches.
inline float log_sum(float a, float b, float c) {
  const float larger = a > b ? a : b, largest = larger > c ? larger : c;
  const float shift = largest == kImpossible ? 0.0f : largest;
  return shift + logarithm_of_any(exponential(a - shift) + exponential(b - shift) + exponential(c - shift));
}

inline float largest_of(const float* x, int64_t count) {
  float largest = kImpossible;
#pragma omp simd reduction(max : largest)
  for (int64_t s = 0; s < count; ++s) largest = x[s] > largest ? x[s] : largest;
  return largest;
}

/// One sequence and its part of the workspace. Rows of states have two impossible ones beside them, before the first
/// for `alphas`, behind the last for all others, so that no state is a special case. A plain value.
template <class T>
struct Sequence {
  const T* log_probabilities;  ///< of its first frame
  float* shares;
  int64_t stride, frames, columns;  ///< stride: from one frame to the next
  const int64_t* labels;
  int64_t count, blank;
  float *alphas, *skips, *emissions, *through, *betas;

  int64_t states() const { return 2 * count + 1; }
  int64_t row() const { return states() + 2; }
  int64_t class_of(int64_t s) const { return s % 2 == 1 ? labels[s / 2] : blank; }
  float* alpha(int64_t t) const { return alphas + t * row() + 2; }
};

/// skips[s] is 0 if a path may go from state s - 2 to s, over the blank between two labels that differ.
template <class T>
void prepare(const Sequence<T>& of) {
  for (int64_t s = 0; s < of.row(); ++s) {
    const bool over = s >= 3 && s < of.states() && s % 2 == 1 && of.class_of(s) != of.class_of(s - 2);
    of.skips[s] = over ? 0.0f : kImpossible;
    of.through[s] = kImpossible;
  }
  for (int64_t t = 0; t < of.frames; ++t) of.alpha(t)[-1] = of.alpha(t)[-2] = kImpossible;
}

template <class T>
void gather(const Sequence<T>& of, int64_t t) {
  const T* row = of.log_probabilities + t * of.stride;
  const float blank = load(row + of.blank);
  for (int64_t i = 0; i < of.count; ++i) {
    of.emissions[2 * i] = blank;
    of.emissions[2 * i + 1] = load(row + of.labels[i]);
  }
  of.emissions[2 * of.count] = blank;
}

/// Fills `alphas`, in each frame relative to its largest one: so f32 is precise enough for long sequences. Returns log
/// p.
template <class T>
double forward(const Sequence<T>& of) {
  double total = 0;
  const int64_t states = of.states();
  const float *skips = of.skips, *emissions = of.emissions;
  for (int64_t t = 0; t < of.frames; ++t) {
    gather(of, t);
    float* alpha = of.alpha(t);
    if (t == 0) {
      for (int64_t s = 0; s < states; ++s) alpha[s] = (s <= 1 ? 0.0f : kImpossible) + emissions[s];
    } else {
      const float* before = of.alpha(t - 1);
#pragma omp simd
      for (int64_t s = 0; s < states; ++s)
        alpha[s] = log_sum(before[s], before[s - 1], before[s - 2] + skips[s]) + emissions[s];
    }
    const float largest = largest_of(alpha, states), shift = largest == kImpossible ? 0.0f : largest;
    for (int64_t s = 0; s < states; ++s) alpha[s] -= shift;
    total += double{shift};
  }
  if (of.frames == 0) return of.count == 0 ? 0 : double{kImpossible};
  const float* last = of.alpha(of.frames - 1);
  return total + double{log_sum(last[states - 1], last[states - 2], kImpossible)};
}

/// The shares of one frame from `betas`, the sums over the path ends behind it: they add up to 1.
template <class T>
void add_shares(const Sequence<T>& of, int64_t t) {
  float* alpha = of.alpha(t);  // read for the last time
  const float* betas = of.betas;
  const int64_t states = of.states();
  for (int64_t s = 0; s < states; ++s) alpha[s] += betas[s];
  const float largest = largest_of(alpha, states);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t s = 0; s < states; ++s) {
    alpha[s] = exponential(alpha[s] - largest);
    sum += alpha[s];
  }
  float* share = of.shares + t * of.stride;
  for (int64_t s = 0; s < states; ++s) share[of.class_of(s)] += alpha[s] / sum;
}

template <class T>
void backward(const Sequence<T>& of) {
  const int64_t states = of.states();
  const float *skips = of.skips, *emissions = of.emissions;
  float *through = of.through, *betas = of.betas;
  for (int64_t t = of.frames; t-- > 0;) {
    if (t + 1 == of.frames) {
      for (int64_t s = 0; s < states; ++s) betas[s] = s + 2 >= states ? 0.0f : kImpossible;
    } else {
#pragma omp simd
      for (int64_t s = 0; s < states; ++s)
        betas[s] = log_sum(through[s], through[s + 1], through[s + 2] + skips[s + 2]);
    }
    add_shares(of, t);
    gather(of, t);
    const float largest = largest_of(betas, states);
    for (int64_t s = 0; s < states; ++s) through[s] = betas[s] - largest + emissions[s];
  }
}

template <class T>
void fill_shares(const Sequence<T>& of, float value) {
  for (int64_t t = 0; t < of.frames; ++t)
    for (int64_t c = 0; c < of.columns; ++c) of.shares[t * of.stride + c] = value;
}

void ctc_loss(const Tensor& log_probabilities, const kernels::CtcTargets& targets, Tensor& losses, Tensor& shares) {
  kernels::check_ctc_shapes(log_probabilities, targets);
  const int64_t frames = log_probabilities.size(0), batch = log_probabilities.size(1),
                columns = log_probabilities.size(2), most = targets.labels.size(1);
  for (int64_t n = 0; n < batch; ++n) kernels::check_ctc_sequence(log_probabilities, targets, n);
  shares.fill(0);
  const int64_t row = kernels::ctc_states(targets) + 2, floats = (frames + 4) * row;
  const Tensor workspace = Tensor::empty({batch, floats});
  visit_fast(log_probabilities.dtype(), "ctc_loss", [&]<class T>(T) {
    parallel_for(0, batch, 1, [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        float* rows = workspace.data<float>() + n * floats;
        const Sequence<T> sequence = {.log_probabilities = log_probabilities.data<T>() + n * columns,
                                      .shares = shares.data<float>() + n * columns,
                                      .stride = batch * columns,
                                      .frames = targets.input_lengths.data<int64_t>()[n],
                                      .columns = columns,
                                      .labels = targets.labels.data<int64_t>() + n * most,
                                      .count = targets.label_lengths.data<int64_t>()[n],
                                      .blank = targets.blank,
                                      .alphas = rows + 4 * row,
                                      .skips = rows,
                                      .emissions = rows + row,
                                      .through = rows + 2 * row,
                                      .betas = rows + 3 * row};
        float* loss = losses.data<float>() + n;
        const bool zero = targets.zero_infinity;
        vectorized([=] {
          prepare(sequence);
          const double total = forward(sequence);
          const bool possible = total != double{kImpossible};
          *loss = possible || !zero ? static_cast<float>(-total) : 0.0f;
          if (possible)
            backward(sequence);
          else if (!zero)
            fill_shares(sequence, std::numeric_limits<float>::quiet_NaN());
        });
      }
    });
  });
}

}  // namespace

void provide_ctc() { kernels::ctc_loss.provide(Target::cpu, ctc_loss); }

}  // namespace tern::cpu
