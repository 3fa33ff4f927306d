#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// Bit planes (codec.h) as entropy codes, and back. The code of a tensor is a byte that tells its packing, then the
// shortest of rANS (dist/codec/rans.h), bit planes and, if the tensor has few elements, Elias codes
// (dist/codec/entropy_coders.h). In rANS, a level and its sign are one symbol: 0, -1, 1, -2, 2, ... are 0, 1, 2, 3, 4,
// ... Every target gives the same bytes. Elias codes are also made alone, for tensors of any length.

namespace tern::kernels {

/// The first byte of an entropy code.
enum class EntropyPacking : uint8_t { planes, elias, rans };
/// Elias codes are tried for tensors with fewer elements than this. For them, the header of rANS is long.
inline constexpr int64_t kEliasElements = 1024;

/// A tensor of a message: its bit planes, and the bytes that stand before its packed code.
struct PackedTensor {
  int64_t numel;
  Tensor codes;   ///< u8 [code_bytes(numel, code_bits(levels))]
  Tensor prefix;  ///< u8 [any number]
};
inline const Tensor& placement(std::span<const PackedTensor> message) {
  return placement_of(message, &PackedTensor::codes);
}

/// The largest number of bytes that a tensor's entropy code has, without its prefix.
constexpr int64_t most_entropy_bytes(int64_t numel, int64_t levels) {
  return numel == 0 ? 0 : 1 + code_bytes(numel, code_bits(levels));
}

/// bytes [u8] = the prefix and the entropy code of each tensor, one tensor after the other. `bytes` has room for the
/// longest; what is left of it stays as it is. lengths [i64, tensors] = the bytes of each tensor. A tensor without
/// elements has none, and must have no prefix.
inline constinit Kernel<void(std::span<const PackedTensor>, int64_t levels, Tensor& bytes, Tensor& lengths)>
    entropy_pack{"entropy_pack"};

/// Writes the planes and the prefix of each tensor. `bytes` and `lengths` as `entropy_pack` gives them. A code is wrong
/// if it does not hold exactly numel levels within ±levels. Then the CPU throws. Other devices do not tell, because the
/// sender made the code; they read and write only the tensors.
inline constinit Kernel<void(std::span<const PackedTensor>, int64_t levels, const Tensor& bytes,
                             std::span<const int64_t> lengths)>
    entropy_unpack{"entropy_unpack"};

/// The bits of Elias' omega code of a number of 1 or more.
constexpr int omega_bits(uint64_t number) {
  int bits = 1;
  for (; number > 1; number = static_cast<uint64_t>(std::bit_width(number)) - 1)
    bits += static_cast<int>(std::bit_width(number));
  return bits;
}
/// The largest number of bytes that a tensor's Elias code has, without its prefix.
constexpr int64_t most_elias_bytes(int64_t numel, int64_t levels) {
  return numel == 0 ? 0 : (1 + numel * (omega_bits(static_cast<uint64_t>(levels) + 1) + 1) + 7) / 8;
}

/// As `entropy_pack` and `entropy_unpack`, but the code of a tensor is its Elias code, the shorter of the two forms.
inline constinit Kernel<void(std::span<const PackedTensor>, int64_t levels, Tensor& bytes, Tensor& lengths)> elias_pack{
    "elias_pack"};
inline constinit Kernel<void(std::span<const PackedTensor>, int64_t levels, const Tensor& bytes,
                             std::span<const int64_t> lengths)>
    elias_unpack{"elias_unpack"};

/// These throw an error that names the operation if the arguments do not fit each other. most(numel, levels) is the
/// largest number of bytes of a tensor's code.
void check_packing(const char* operation, std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                   const Tensor& lengths, int64_t (*most)(int64_t numel, int64_t levels));
void check_unpacking(const char* operation, std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                     std::span<const int64_t> lengths);

}  // namespace tern::kernels
