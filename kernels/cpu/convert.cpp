#include "tern/kernels/cpu/convert.h"

#include "tern/kernels/cpu/map.h"

namespace tern::cpu {

void convert_elements(const Tensor& x, const Tensor& y) {
  visit_fast(x.dtype(), "convert", [&]<class From>(From) {
    visit_fast(y.dtype(), "convert", [&]<class To>(To) {
      const From* in = x.data<From>();
      To* out = y.data<To>();
      parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
        for (int64_t i = first; i < last; ++i) store(out + i, load(in + i));
      });
    });
  });
}

Tensor as_f32(const Tensor& x) {
  if (x.dtype() == DType::f32) return x;
  Tensor converted = Tensor::empty(x.shape(), {.dtype = DType::f32, .format = x.format()});
  convert_elements(x, converted);
  return converted;
}

}  // namespace tern::cpu
