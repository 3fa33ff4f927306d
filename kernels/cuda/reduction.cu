#include "tern/kernels/cuda/reduction.h"

#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/operands.h"
#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reduction.h"

namespace tern::cuda {
namespace {

constexpr int64_t kMostBatch = 65535;  // the limit of a grid's third extent

template <class T>
struct Elements {
  const T* x;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const auto pack = load_pack<T, Width>(x + at);
    for (int j = 0; j < Width; ++j) sums[j] += float(pack.values[j]);
  }
};

template <class T>
struct Store {
  Walk<2> kept;
  double scale;
  T* y;
  __device__ void operator()(int64_t output, const double* totals) const {
    int64_t at[2] = {};
    kept.find(output, at);
    y[at[1]] = static_cast<T>(static_cast<float>(scale * totals[0]));
  }
};

template <class T, class Result>
void run(const char* operation, const Summation& summation, const Tensor& x, double scale, Result* y) {
  constexpr int kWidth = kPackBytes / sizeof(T);
  const T* in = x.data<T>();
  sum<1, kWidth>(operation, x.device(), summation, is_aligned(in, kPackBytes), Elements<T>{in},
                 Store<Result>{summation.kept, scale, y});
}

/// Stores the gradient through a relu, and adds it up.
template <class T>
struct MaskedGradient {
  const T *y, *dy;
  T* dx;
  template <int Width>
  __device__ void add(int64_t at, int64_t, float* sums) const {
    const auto outputs = load_pack<T, Width>(y + at);
    auto gradients = load_pack<T, Width>(dy + at);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      if (float(outputs.values[j]) <= 0) gradients.values[j] = static_cast<T>(0.0f);  // NaN passes dy
      sums[j] += float(gradients.values[j]);
    }
    store_pack(dx + at, gradients);
  }
};

/// The greatest of sign·x over each row, times sign.
template <class T>
struct RowExtremum {
  const T* x;
  float sign;
  T* y;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const float best = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return sign * float(x[row.begin() + c]); });
    if (row.exists && threadIdx.x % Group == 0) y[row.number] = static_cast<T>(sign * best);
  }
};

struct Least {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

template <class T>
struct RowArgmax {
  const T* x;
  int64_t* y;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    const float best = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    int64_t first = row.columns - 1;
    row.for_each([&](int64_t c) {
      const float value = float(in[c]);
      if ((value == best || (best != best && value != value)) && c < first) first = c;
    });
    first = fold_group<Group>(first, Least{});
    if (row.exists && threadIdx.x % Group == 0) y[row.number] = first;
  }
};

template <class T>
struct RowLogSumExp {
  const T* x;
  T* y;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    const float largest = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float shift = largest - largest == 0 ? largest : 0;  // infinity - infinity is NaN
    const float total = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    if (row.exists && threadIdx.x % Group == 0) y[row.number] = static_cast<T>(logf(total) + shift);
  }
};

template <class MakeBody>
void reduce_rows(const char* operation, const Tensor& x, const Tensor& y, MakeBody make_body) {
  kernels::check_rows(operation, x, y, y.dtype() == DType::i64 ? DType::i64 : x.dtype());
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    for_each_row(operation, x.device(), x.size(0), x.size(1), make_body(static_cast<const T*>(x.data<T>())));
  });
}

void row_max(const Tensor& x, Tensor& y) {
  reduce_rows("row_max", x, y, [&]<class T>(const T* in) { return RowExtremum<T>{in, 1, y.data<T>()}; });
}
void row_min(const Tensor& x, Tensor& y) {
  reduce_rows("row_min", x, y, [&]<class T>(const T* in) { return RowExtremum<T>{in, -1, y.data<T>()}; });
}
void row_argmax(const Tensor& x, Tensor& y) {
  reduce_rows("row_argmax", x, y, [&]<class T>(const T* in) { return RowArgmax<T>{in, y.data<int64_t>()}; });
}
void row_logsumexp(const Tensor& x, Tensor& y) {
  reduce_rows("row_logsumexp", x, y, [&]<class T>(const T* in) { return RowLogSumExp<T>{in, y.data<T>()}; });
}

void sum(const Tensor& x, double scale, Tensor& y) {
  visit_fast(x.dtype(), "sum", [&]<class T>(T) { run<T>("sum", Summation("sum", x, y), x, scale, y.data<T>()); });
}

void relu_backward_sums(const Tensor& y, const Tensor& dy, Tensor& dx, Tensor& sums) {
  const char* operation = "relu_backward_sums";
  kernels::check_alike(operation, y, dy);
  kernels::check_alike(operation, y, dx);
  const auto summation = Summation::per_channel(operation, y);
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    const MaskedGradient<T> each{y.data<T>(), dy.data<T>(), dx.data<T>()};
    const bool packs =
        is_aligned(each.y, kPackBytes) && is_aligned(each.dy, kPackBytes) && is_aligned(each.dx, kPackBytes);
    sum<1, kPackBytes / sizeof(T)>(operation, y.device(), summation, packs, each,
                                   Store<float>{summation.kept, 1, sums.data<float>()});
  });
}

struct Repeat {
  float scale;
  __device__ float operator()(float x) const { return scale * x; }
};

void broadcast_to(const Tensor& x, double scale, Tensor& y) {
  map("broadcast_to", Repeat{static_cast<float>(scale)}, y, x);
}

}  // namespace

Summation::Summation(const char* operation, const Tensor& x, const Tensor& y)
    : kept(kernels::dimensions_of<2>(kernels::sum_nest(x, y), false), operation),
      summed(kernels::dimensions_of<1>(kernels::sum_nest(x, y), true), operation) {
  const auto nest = kernels::sum_nest(x, y);
  const auto keeps = [&](int d) { return nest.step[1][d] != 0; };
  const int last = nest.depth - 1;
  width = nest.extent[last];
  rows = last >= 1 ? nest.extent[last - 1] : 1;
  batch = last >= 2 ? nest.extent[0] : 1;
  columns = batch <= kMostBatch && keeps(last) && nest.step[1][last] == 1 && last <= 2 &&
            (last < 1 || !keeps(last - 1)) && (last < 2 || (keeps(0) && nest.step[1][0] == width));
}

Summation Summation::per_channel(const char* operation, const Tensor& x) {
  Shape channels = x.shape();
  for (int d = 0; d < x.rank(); ++d)
    if (d != 1) channels[d] = 1;
  // Only the strides of this tensor are used.
  return {operation, x, Tensor::empty(channels)};
}

Parts cut(int64_t summed, int64_t per_pass, int64_t blocks) {
  constexpr int64_t kPasses = 8, kMostParts = 512;
  if (blocks > kMostCounters) return {1, summed};  // they keep any device busy
  const int64_t count = std::clamp<int64_t>(summed / (per_pass * kPasses), 1, kMostParts);
  return {static_cast<int>(count), (summed + count - 1) / count};
}

void channel_sums(const char* operation, const Tensor& x, Tensor& sums) {
  if (!sums.defined()) return;
  visit_fast(x.dtype(), operation,
             [&]<class T>(T) { run<T>(operation, Summation::per_channel(operation, x), x, 1, sums.data<float>()); });
}

void provide_reduction() {
  kernels::sum.provide(Target::cuda, sum);
  kernels::relu_backward_sums.provide(Target::cuda, relu_backward_sums);
  kernels::broadcast_to.provide(Target::cuda, broadcast_to);
  kernels::row_max.provide(Target::cuda, row_max);
  kernels::row_min.provide(Target::cuda, row_min);
  kernels::row_argmax.provide(Target::cuda, row_argmax);
  kernels::row_logsumexp.provide(Target::cuda, row_logsumexp);
}

}  // namespace tern::cuda
