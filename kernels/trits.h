#pragma once

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/entropy.h"

// Bit planes of one level as bytes of five numbers -1, 0 or 1, and back. A byte holds Σ (x_i + 1)·3^i. The last byte is
// filled up with the number 0. Every target gives the same bytes.

namespace tern::kernels {

inline constexpr int64_t kNumbersPerByte = 5;
constexpr int64_t packed_trit_bytes(int64_t numel) { return (numel + kNumbersPerByte - 1) / kNumbersPerByte; }

/// bytes [u8] = the prefix and the packed numbers of each tensor, one tensor after the other.
inline constinit Kernel<void(std::span<const PackedTensor>, Tensor& bytes)> trit_pack{"trit_pack"};
/// Writes the planes and the prefix of each tensor. The CPU throws if a byte is above 3^5 - 1; other devices do not
/// check, because the sender made it.
inline constinit Kernel<void(std::span<const PackedTensor>, const Tensor& bytes)> trit_unpack{"trit_unpack"};

/// Throws an error that names the operation if the arguments do not fit each other.
void check_trits(const char* operation, std::span<const PackedTensor> message, const Tensor& bytes);

/// Byte `at` of the packed numbers of bit planes.
constexpr uint8_t trit_byte(const uint8_t* planes, int64_t numel, int64_t at) {
  uint32_t byte = 0;
  for (int64_t i = kNumbersPerByte * (at + 1); i-- > kNumbersPerByte * at;) {
    const CodecPlane sign = codec_plane(numel, 2, i / kCodecGroup, 0),
                     level = codec_plane(numel, 2, i / kCodecGroup, 1);
    const int64_t within = i % kCodecGroup / 8;
    uint32_t digit = 1;
    if (i < numel && (planes[level.at + within] >> (i % 8) & 1) != 0)
      digit = (planes[sign.at + within] >> (i % 8) & 1) != 0 ? 0 : 2;
    byte = 3 * byte + digit;
  }
  return static_cast<uint8_t>(byte);
}
/// The code (codec_code) of a number of a byte.
constexpr uint32_t trit_code(uint32_t byte, int64_t place) {
  for (; place > 0; --place) byte /= 3;
  return byte % 3 == 1 ? 0 : byte % 3 == 0 ? 3 : 2;
}

}  // namespace tern::kernels
