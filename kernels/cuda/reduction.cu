#include "tern/kernels/cuda/reduction.h"

#include "tern/kernels/cuda/summation.h"

namespace tern::cuda {
namespace {

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

}  // namespace

void sum(const Tensor& x, double scale, Tensor& y) {
  visit_fast(x.dtype(), "sum", [&]<class T>(T) { run<T>("sum", Summation("sum", x, y), x, scale, y.data<T>()); });
}

void channel_sums(const char* operation, const Tensor& x, Tensor& sums) {
  if (!sums.defined()) return;
  visit_fast(x.dtype(), operation,
             [&]<class T>(T) { run<T>(operation, Summation::per_channel(operation, x), x, 1, sums.data<float>()); });
}

}  // namespace tern::cuda
