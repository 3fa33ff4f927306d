#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tern/core/bfloat16.h"

namespace tern {

/// Element types. Activations are f32, bf16 or f64 (gradient checks); labels i64; pixels u8.
enum class DType : uint8_t { f32, f64, bf16, i64, u8 };

size_t size_of(DType dtype);
/// "f32", "bf16", ...
std::string to_string(DType dtype);

template <class T>
inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "not an element type"); }();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;

inline bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16; }

/// The dtype of parameters and statistics beside activations of `dtype`: f32 for bf16, else `dtype`.
inline DType parameter_dtype(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

}  // namespace tern
