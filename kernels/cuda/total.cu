#include "tern/kernels/cuda/total.h"

#include "tern/kernels/cuda/group.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {
namespace {

template <class X, class Y>
__global__ void total_kernel(const X* x, int64_t count, double scale, Y* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += x[i];
  sum = fold_group<kThreads>(sum, Sum{});
  if (threadIdx.x == 0) *result = static_cast<Y>(scale * sum);
}

}  // namespace

void total(const char* operation, const Tensor& x, double scale, const Tensor& result) {
  const auto run = [&]<class X, class Y>(X, Y) {
    launch(operation, x.device(), {}, total_kernel<X, Y>, static_cast<const X*>(x.data<X>()), x.numel(), scale,
           result.data<Y>());
  };
  if (x.dtype() == DType::f64)
    run(double{}, double{});
  else
    run(float{}, float{});
}

}  // namespace tern::cuda
