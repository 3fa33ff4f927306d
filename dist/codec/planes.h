#pragma once

#include "tern/dist/codec.h"
#include "tern/kernels/codec.h"

namespace tern {

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
