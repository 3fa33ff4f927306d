#pragma once

#include "tern/core/dtype.h"
#include "tern/core/error.h"

namespace tern {

/// Calls `function(T{})` with the C++ type of `dtype`: `visit_dtype(t, [&]<class T>(T) { ... });`
template <class Function>
decltype(auto) visit_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f64: return function(double{});
    case DType::bf16: return function(BFloat16{});
    case DType::i64: return function(int64_t{});
    case DType::u8: return function(uint8_t{});
    case DType::f32: break;
  }
  return function(float{});
}

/// Like `visit_dtype`, but only for f32, f64 and bf16. If `dtype` is another one, throws an error that names
/// `operation`.
template <class Function>
decltype(auto) visit_floating(DType dtype, const char* operation, Function&& function) {
  check(is_floating(dtype), operation, ": elements are ", dtype, ", expected f32, f64 or bf16");
  if (dtype == DType::f64) return function(double{});
  if (dtype == DType::bf16) return function(BFloat16{});
  return function(float{});
}

/// The type of a sum of elements of type T. The parameters that go with activations of type T have it too. It is float
/// for bf16, and T for all others.
template <class T>
struct Wider {
  using type = T;
};
template <>
struct Wider<BFloat16> {
  using type = float;
};
template <class T>
using wider_t = typename Wider<T>::type;

}  // namespace tern
