#include "tern/kernels/cpu/elementwise.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/loop_nest.h"

namespace tern::cpu {
namespace {

/// y = function(a, b) over the shape both broadcast to, in y's storage order; the inner run is a vector loop where each
/// operand moves by one element or stays.
template <class Function>
void combine(const char* operation, const Tensor& a, const Tensor& b, Tensor& y, Function function) {
  const kernels::LoopNest<3> nest(
      y.shape(), kernels::storage_order(y),
      {kernels::strides_in(a, y.shape()), kernels::strides_in(b, y.shape()), kernels::strides_in(y, y.shape())});
  const int64_t a_step = nest.inner_step(0), b_step = nest.inner_step(1), inner = nest.inner;
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = y.data<T>();
    const auto run = [=](const T* p, const T* q, T* r, int64_t count) {
      if (a_step == 1 && b_step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i), load(q + i)));
      } else if (a_step == 1 && b_step == 0) {
        const float value = load(q);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i), value));
      } else if (a_step == 0 && b_step == 1) {
        const float value = load(p);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(value, load(q + i)));
      } else {
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i * a_step), load(q + i * b_step)));
      }
    };
    if (nest.outer == 1) {
      parallel_vectorized(inner, kGrain, [=](int64_t first, int64_t last) {
        run(left + first * a_step, right + first * b_step, out + first, last - first);
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner));
    parallel_vectorized(nest.outer, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto at = nest.offsets(i);
        run(left + at[0], right + at[1], out + i * inner, inner);
      }
    });
  });
}

}  // namespace

void add(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("add", a, b, y, [](float p, float q) { return p + q; });
}
void subtract(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("subtract", a, b, y, [](float p, float q) { return p - q; });
}
void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("multiply", a, b, y, [](float p, float q) { return p * q; });
}
void divide(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("divide", a, b, y, [](float p, float q) { return p / q; });
}

}  // namespace tern::cpu
