#include "tern/kernels/check.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/softmax.h"
#include "tern/kernels/cuda/summation.h"

namespace tern::cuda {
namespace {

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

}  // namespace

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_alike("mse", x, target);
  Shape one = x.shape();
  for (int d = 0; d < one.rank(); ++d) one[d] = 1;
  visit_fast(x.dtype(), "mse", [&]<class T>(T) {
    sum<1, 1>("mse", x.device(), Summation("mse", x, Tensor::empty(one)), false,
              SquaredDistance<T>{x.data<T>(), target.data<T>()},
              StoreMean{static_cast<double>(x.numel()), loss.data<float>()});
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_alike("mse_backward", x, target);
  map("mse_backward", ErrorGradient{static_cast<float>(2 / static_cast<double>(x.numel())), dloss.data<float>()}, dx, x,
      target);
}

}  // namespace tern::cuda
