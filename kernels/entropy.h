#pragma once

#include <cstdint>
#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// Bit planes (codec.h) as entropy codes, and back. The code of a tensor is a byte that tells its packing, then the
// shortest of rANS (dist/codec/rans.h), bit planes and, if the tensor has few elements, Elias codes
// (dist/codec/entropy_coders.h). In rANS, a level and its sign are one symbol: 0, -1, 1, -2, 2, ... are 0, 1, 2, 3, 4,
// ... Every target gives the same bytes.

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
/// if it does not hold numel levels within ±levels. The CPU throws if it finds that. Other devices do not tell,
/// because the sender made the code; they read and write only the tensors.
inline constinit Kernel<void(std::span<const PackedTensor>, int64_t levels, const Tensor& bytes,
                             std::span<const int64_t> lengths)>
    entropy_unpack{"entropy_unpack"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_entropy_pack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                        const Tensor& lengths);
void check_entropy_unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                          std::span<const int64_t> lengths);

}  // namespace tern::kernels
