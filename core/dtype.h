#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tern {

/// The upper half of an IEEE float: 8 bits of exponent, 7 of mantissa. Conversion from float rounds to nearest even.
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : rounded >> 16);
  }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// Element types. Activations are f32, bf16 or f64 (f64 for gradient checks). Labels are i64. Pixels are u8.
enum class DType : uint8_t { f32, f64, bf16, i64, u8 };

size_t size_of(DType dtype);
/// Returns "f32", "bf16" and so on.
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

/// The dtype of parameters and statistics that go with activations of `dtype`: f32 for bf16, otherwise `dtype`.
inline DType parameter_dtype(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

}  // namespace tern
