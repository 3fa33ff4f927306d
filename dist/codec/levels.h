#pragma once

#include <cstddef>
#include <vector>

#include "tern/core/random.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"
#include "tern/kernels/codec.h"

namespace tern {

/// How whole numbers within ±levels become bytes.
enum class Packing : uint8_t {
  fixed,    ///< bit planes (kernels::code_bytes)
  trits,    ///< five a byte; one level
  elias,    ///< elias.h
  entropy,  ///< a byte that tells which, then the shortest of rANS, bit planes and, of short messages, Elias
};

bool is_fixed_size(Packing packing);
/// Elements that take whole bytes wherever a multiple of them begins; 0 where the size varies.
int64_t packing_granule(Packing packing);
int64_t most_packed_bytes(Packing packing, int64_t n, int64_t levels);

/// Appends the levels that `codes`, bit planes of n elements, hold.
void append_packed(Packing packing, const Tensor& codes, int64_t n, int64_t levels, std::vector<std::byte>& bytes);
/// sum += level · its bucket's unit. Units are f32 [buckets]. An error where `bytes` are no such levels.
void add_packed(Packing packing, std::span<const std::byte> bytes, const Tensor& units, int64_t bucket, int64_t levels,
                Tensor& sum);

/// Messages of bit planes (kernels/codec.h), made and read where gradients are: the units of all, unless ranks share
/// them, then the codes of each.
struct Planes {
  int64_t bucket = 0, levels = 1;

  /// With these units, f32 [units of all gradients] on the CPU.
  Tensor encode(const FusedGradients& message, const Tensor& units, bool shared) const;
  /// With a norm of each bucket / levels for its unit. An InputError where one is not finite.
  Tensor encode(const FusedGradients& message, kernels::BucketNorm norm) const;
  /// MessageCodec::decode_add
  void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const;
};

}  // namespace tern
