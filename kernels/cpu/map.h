#pragma once

#include "tern/core/tensor.h"
#include "tern/core/visit.h"
#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

/// As `visit_floating`, for f32 and bf16, the dtypes of the fast kernels. The reference computes f64.
template <class Function>
decltype(auto) visit_fast(DType dtype, const char* operation, Function&& function) {
  check(dtype == DType::f32 || dtype == DType::bf16, operation, ": elements are ", dtype,
        ", expected f32, f64 or bf16");
  if (dtype == DType::bf16) return function(BFloat16{});
  return function(float{});
}

/// y[i] = function(x[i]) in f32, in storage order. y may be x.
template <class Function>
void map(const char* operation, const Tensor& x, Tensor& y, Function function) {
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) store(out + i, function(load(in + i)));
    });
  });
}

/// y[i] = function(a[i], b[i]) in f32, in the storage order of a. y may be a or b.
template <class Function>
void map(const char* operation, const Tensor& a, const Tensor& b, Tensor& y, Function function) {
  const Tensor same = b.to(a.format());
  visit_fast(a.dtype(), operation, [&]<class T>(T) {
    const T *left = a.data<T>(), *right = same.data<T>();
    T* out = y.data<T>();
    parallel_vectorized(a.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) store(out + i, function(load(left + i), load(right + i)));
    });
  });
}

}  // namespace tern::cpu
