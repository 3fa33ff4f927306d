#include "tern/kernels/reduction.h"

#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/loop_nest.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/relu_steps.h"

namespace tern::cpu {
namespace {

constexpr int64_t kRun = 4096;  // elements summed in f32 before the sums are added in f64

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

/// The dimensions of x in storage order. Neighbours are joined if both are summed or both are kept. `regular` is true
/// if summed and kept dimensions alternate, there are at most three, and the kept ones lie in y in the same order.
struct Reduction {
  Reduction(const Tensor& x, const Tensor& y)
      : nest(x.shape(), kernels::storage_order(x),
             {kernels::strides_in(x, x.shape()), kernels::strides_in(y, x.shape())}) {
    regular = x.numel() > 0 && nest.depth <= 3;
    int64_t dense = 1;
    for (int d = nest.depth - 1; d >= 0 && regular; --d) {
      regular = (sums(d) || nest.step[1][d] == dense) && (d == 0 || sums(d) != sums(d - 1));
      if (!sums(d)) dense *= nest.extent[d];
    }
  }
  bool sums(int d) const { return nest.step[1][d] == 0; }

  kernels::LoopNest<2> nest;
  bool regular;
};

/// Sums of adjacent elements: y[k] = Σ x[k, :] for `rows` rows.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t columns, float scale, T* y) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns));
  parallel_vectorized(rows, grain, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      store(y + row, static_cast<float>(scale * run_sum(x + row * columns, columns)));
  });
}

/// Sums all of x to one number: blocks in parallel, then their sums in order.
template <class T>
void sum_all(const T* x, int64_t count, float scale, T* y) {
  const int64_t blocks = (count + kRun - 1) / kRun;
  const Tensor partials = Tensor::empty({blocks}, {.dtype = DType::f64});
  double* partial = partials.data<double>();
  parallel_vectorized(blocks, kGrain / kRun, [=](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block)
      partial[block] = run_sum(x + block * kRun, std::min(kRun, count - block * kRun));
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += partial[block];
  store(y, static_cast<float>(scale * total));
}

/// y[k] = Σ over o and i of x[o, k, i].
template <class T>
void sum_around(const T* x, int64_t outer, int64_t kept, int64_t inner, float scale, T* y) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, outer * inner));
  parallel_vectorized(kept, grain, [=](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      double total = 0;
      for (int64_t o = 0; o < outer; ++o) total += run_sum(x + (o * kept + k) * inner, inner);
      store(y + k, static_cast<float>(scale * total));
    }
  });
}

void sum(const Tensor& x, double scale, Tensor& y) {
  const Reduction reduction(x, y);
  const auto& extent = reduction.nest.extent;
  const int depth = reduction.nest.depth;
  if (!reduction.regular) return kernels::sum.on(Target::reference)(x, scale, y);
  visit_fast(x.dtype(), "sum", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    const auto factor = static_cast<float>(scale);
    const bool summed_last = reduction.sums(depth - 1), summed_first = reduction.sums(0);
    if (depth == 1 && summed_last) return sum_all(in, extent[0], factor, out);
    if (depth == 1) return sum_rows(in, extent[0], 1, factor, out);
    if (depth == 2 && summed_last) return sum_rows(in, extent[0], extent[1], factor, out);
    if (depth == 2) return column_sums(in, 1, extent[0], extent[1], factor, out);
    if (summed_first && summed_last) return sum_around(in, extent[0], extent[1], extent[2], factor, out);
    return column_sums(in, extent[0], extent[1], extent[2], factor, out);
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
