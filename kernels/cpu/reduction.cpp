#include "tern/kernels/reduction.h"

#include <algorithm>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/loop_nest.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/relu_steps.h"

namespace tern::cpu {
namespace {

constexpr int64_t kRun = 256;  // adjacent elements summed in f32 before the sums are added in f64

/// Σ x over adjacent elements.
template <class T>
double run_sum(const T* x, int64_t count) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    float partial = 0;
#pragma omp simd reduction(+ : partial)
    for (int64_t i = begin; i < std::min(count, begin + kRun); ++i) partial += load(x + i);
    total += partial;
  }
  return total;
}

/// Sums all of x to one number: blocks in parallel, then their sums in order.
template <class T>
void sum_all(const T* x, int64_t count, double scale, T* y) {
  constexpr int64_t kBlock = 4096;
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const Tensor partials = Tensor::empty({blocks}, {.dtype = DType::f64});
  double* partial = partials.data<double>();
  parallel_vectorized(blocks, kGrain / kBlock, [=](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block)
      partial[block] = run_sum(x + block * kBlock, std::min(kBlock, count - block * kBlock));
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += partial[block];
  store(y, static_cast<float>(scale * total));
}

/// The dimensions of x that y keeps and those that are summed, each in the storage order of x.
struct Reduction {
  explicit Reduction(const kernels::LoopNest<2>& nest)
      : kept(kernels::dimensions_of<2>(nest, false)), summed(kernels::dimensions_of<1>(nest, true)) {}

  /// The least number of outputs per thread, if each thread takes them in groups of `together`.
  int64_t grain(int64_t together) const {
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, summed.outer * summed.inner * together));
  }

  kernels::LoopNest<2> kept;
  kernels::LoopNest<1> summed;
};

/// One output after the other, from the runs of adjacent elements that it sums.
template <class T>
void sum_runs(const T* x, const Reduction& reduction, double scale, T* y) {
  const auto kept = reduction.kept;
  const auto summed = reduction.summed;
  const int64_t x_step = kept.inner_step(0), y_step = kept.inner_step(1);
  parallel_vectorized(kept.outer * kept.inner, reduction.grain(1), [=](int64_t first, int64_t last) {
    for (int64_t next = first; next < last;) {
      const auto at = kept.offsets(next / kept.inner);
      const int64_t begin = next % kept.inner, end = std::min(kept.inner, begin + last - next);
      for (int64_t k = begin; k < end; ++k) {
        double total = 0;
        for (int64_t o = 0; o < summed.outer; ++o)
          total += run_sum(x + at[0] + k * x_step + summed.offsets(o)[0], summed.inner);
        store(y + at[1] + k * y_step, static_cast<float>(scale * total));
      }
      next += end - begin;
    }
  });
}

/// Neighbouring outputs side by side, if what they sum is not adjacent: 64 rows in f32, then their sums in f64.
template <class T>
void sum_columns(const T* x, const Reduction& reduction, double scale, T* y) {
  constexpr int64_t kWidth = 64, kNarrow = 8, kRows = 64;
  const auto kept = reduction.kept;
  const auto summed = reduction.summed;
  const int64_t row_step = summed.inner_step(0), x_step = kept.inner_step(0), y_step = kept.inner_step(1);
  const int64_t strip = x_step == 1 ? kWidth : kNarrow;  // a narrow one gives more threads work
  const int64_t strips = (kept.inner + strip - 1) / strip;
  const int64_t grain = reduction.grain(std::min(strip, kept.inner));
  parallel_vectorized(kept.outer * strips, grain, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto at = kept.offsets(i / strips);
      const int64_t begin = i % strips * strip, width = std::min(strip, kept.inner - begin);
      double total[kWidth] = {};
      float partial[kWidth] = {};
      int64_t added = 0;  // rows in `partial`
      for (int64_t o = 0; o < summed.outer; ++o) {
        const T* in = x + at[0] + begin * x_step + summed.offsets(o)[0];
        for (int64_t left = summed.inner; left > 0;) {
          const int64_t rows = std::min(left, kRows - added);
          if (x_step == 1)
            for (int64_t row = 0; row < rows; ++row, in += row_step) {
#pragma omp simd
              for (int64_t c = 0; c < width; ++c) partial[c] += load(in + c);
            }
          else
            for (int64_t row = 0; row < rows; ++row, in += row_step)
              for (int64_t c = 0; c < width; ++c) partial[c] += load(in + c * x_step);
          left -= rows;
          added += rows;
          if (added < kRows) continue;
          for (int64_t c = 0; c < width; ++c) total[c] += partial[c];
          std::fill_n(partial, width, 0.0f);
          added = 0;
        }
      }
      T* out = y + at[1] + begin * y_step;
      for (int64_t c = 0; c < width; ++c) store(out + c * y_step, static_cast<float>(scale * (total[c] + partial[c])));
    }
  });
}

void sum(const Tensor& x, double scale, Tensor& y) {
  constexpr int64_t kShortRun = 16;  // shorter ones cost more than loads with a step
  const Reduction reduction(kernels::sum_nest(x, y));
  visit_fast(x.dtype(), "sum", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    if (y.numel() == 1)
      sum_all(in, x.numel(), scale, out);
    else if (reduction.summed.inner_step(0) == 1 && reduction.summed.inner >= kShortRun)
      sum_runs(in, reduction, scale, out);
    else
      sum_columns(in, reduction, scale, out);
  });
}

void broadcast_to(const Tensor& x, double scale, Tensor& y) {
  const kernels::LoopNest<2> nest(y.shape(), kernels::storage_order(y),
                                  {kernels::strides_in(x, y.shape()), kernels::strides_in(y, y.shape())});
  visit_fast(y.dtype(), "broadcast_to", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    const auto factor = static_cast<float>(scale);
    const int64_t step = nest.inner_step(0), inner = nest.inner;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner));
    parallel_vectorized(nest.outer, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const T* from = in + nest.offsets(i)[0];
        T* to = out + i * inner;
#pragma omp simd
        for (int64_t j = 0; j < inner; ++j) store(to + j, factor * load(from + j * step));
      }
    });
  });
}

/// Calls row(in, r) for every row r of x [R, C].
template <class Row>
void for_each_row(const char* operation, const Tensor& x, const Tensor& y, Row row) {
  kernels::check_rows(operation, x, y, y.dtype() == DType::i64 ? DType::i64 : x.dtype());
  const int64_t columns = x.size(1);
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const T* in = x.data<T>();
    parallel_vectorized(x.size(0), std::max<int64_t>(1, kGrain / columns), [=](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) row(in + r * columns, r);
    });
  });
}

/// The greatest of sign·x, times sign. NaN if x has one. The lanes are independent, so that the loop is one of vectors.
template <class T>
float extremum(const T* x, int64_t count, float sign) {
  constexpr int64_t kLanes = 32;
  float best[kLanes];
  for (float& lane : best) lane = sign * load(x);
  const auto take = [sign](float found, float& lane) {
    const float value = sign * found;
    lane = ((value > lane) | (value != value)) ? value : lane;  // a NaN in the lane stays: nothing is above it
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < kLanes; ++lane) take(load(x + i + lane), best[lane]);
  }
  for (; i < count; ++i) take(load(x + i), best[0]);
  for (int64_t lane = 1; lane < kLanes; ++lane) take(sign * best[lane], best[0]);
  return sign * best[0];
}

void row_max(const Tensor& x, Tensor& y) {
  visit_fast(y.dtype(), "row_max", [&]<class T>(T) {
    for_each_row("row_max", x, y, [out = y.data<T>(), columns = x.size(1)](const auto* row, int64_t r) {
      store(out + r, extremum(row, columns, 1));
    });
  });
}

void row_min(const Tensor& x, Tensor& y) {
  visit_fast(y.dtype(), "row_min", [&]<class T>(T) {
    for_each_row("row_min", x, y, [out = y.data<T>(), columns = x.size(1)](const auto* row, int64_t r) {
      store(out + r, extremum(row, columns, -1));
    });
  });
}

void row_argmax(const Tensor& x, Tensor& y) {
  for_each_row("row_argmax", x, y, [out = y.data<int64_t>(), columns = x.size(1)](const auto* row, int64_t r) {
    const float best = extremum(row, columns, 1);
    int64_t c = 0;
    while (c + 1 < columns && !(load(row + c) == best || (best != best && load(row + c) != load(row + c)))) ++c;
    out[r] = c;
  });
}

void row_logsumexp(const Tensor& x, Tensor& y) {
  visit_fast(y.dtype(), "row_logsumexp", [&]<class T>(T) {
    for_each_row("row_logsumexp", x, y, [out = y.data<T>(), columns = x.size(1)](const auto* row, int64_t r) {
      const float largest = extremum(row, columns, 1), shift = largest - largest == 0 ? largest : 0;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < columns; ++c) sum += exponential(load(row + c) - shift);
      store(out + r, logarithm_of_any(sum) + shift);
    });
  });
}

}  // namespace

void provide_reduction() {
  kernels::sum.provide(Target::cpu, sum);
  kernels::relu_backward_sums.provide(Target::cpu, kernels::mask_then_sum<Target::cpu>);
  kernels::broadcast_to.provide(Target::cpu, broadcast_to);
  kernels::row_max.provide(Target::cpu, row_max);
  kernels::row_min.provide(Target::cpu, row_min);
  kernels::row_argmax.provide(Target::cpu, row_argmax);
  kernels::row_logsumexp.provide(Target::cpu, row_logsumexp);
}

}  // namespace tern::cpu
