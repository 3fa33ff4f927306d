#include "tern/kernels/cpu/map.h"
#include "tern/kernels/cpu/softmax.h"

namespace tern::cpu {

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  constexpr int64_t kBlock = 4096;
  const Tensor aim = target.to(x.format());
  const int64_t count = x.numel(), blocks = (count + kBlock - 1) / kBlock;
  const Tensor partials = Tensor::empty({blocks}, {.dtype = DType::f64});
  double* partial = partials.data<double>();
  visit_fast(x.dtype(), "mse", [&]<class T>(T) {
    const T *in = x.data<T>(), *wanted = aim.data<T>();
    parallel_vectorized(blocks, kGrain / kBlock, [=](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
          const float distance = load(in + i) - load(wanted + i);
          sum += distance * distance;
        }
        partial[block] = sum;
      }
    });
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += partial[block];
  *loss.data<float>() = static_cast<float>(total / static_cast<double>(count));
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  const auto factor = static_cast<float>(dloss.item() * 2 / static_cast<double>(x.numel()));
  map("mse_backward", x, target, dx, [=](float value, float wanted) { return factor * (value - wanted); });
}

}  // namespace tern::cpu
