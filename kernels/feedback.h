#pragma once

#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// The loops of error feedback, which sends f·d for what a codec decodes to d, and keeps the rest of what it encoded.
// One call handles all gradients of a message. Gradients are f32, row-major. Every target gives the same bits, unless a
// value is NaN.

namespace tern::kernels {

/// A gradient of a message, what is kept of it, and what a codec with error feedback encodes.
struct CorrectedGradient {
  Tensor gradient;
  Tensor minus;  ///< undefined: nothing is subtracted
  Tensor residual;
  Tensor whole;  ///< may be the residual itself
};
/// What a codec encoded, and what its message decodes to.
struct DecodedPair {
  Tensor whole, decoded;
};
/// Bytes at any address, u8 [n], and the place of their copy.
struct CopiedBytes {
  Tensor from, to;
};
/// x, and what it is added to.
struct ScaledAddition {
  Tensor x, sum;
};
inline const Tensor& placement(std::span<const CorrectedGradient> message) {
  return placement_of(message, &CorrectedGradient::gradient);
}
inline const Tensor& placement(std::span<const DecodedPair> message) {
  return placement_of(message, &DecodedPair::whole);
}
inline const Tensor& placement(std::span<const ScaledAddition> message) {
  return placement_of(message, &ScaledAddition::x);
}

inline const Tensor& placement(std::span<const CopiedBytes> copies) { return placement_of(copies, &CopiedBytes::from); }

/// whole = gradient - minus + decay·residual, without fused multiply-add. The four have one shape.
inline constinit Kernel<void(std::span<const CorrectedGradient>, double decay)> add_residual{"add_residual"};

/// factors [f32, pairs] = the f from 0 to 1 with which f·decoded is nearest to whole: ⟨whole, decoded⟩ / |decoded|², or
/// 1 if decoded is zero. The sums are in f64, in the fixed order of codec_arithmetic.h. No tensor is empty.
inline constinit Kernel<void(std::span<const DecodedPair>, Tensor& factors)> nearest_factors{"nearest_factors"};

/// sum += sign·f·x, or sum += sign·x if `factors` is undefined, without fused multiply-add. factors: u8 [4·tensors],
/// the bytes of f32 [tensors] at any address. `sign` is 1 or -1.
inline constinit Kernel<void(std::span<const ScaledAddition>, const Tensor& factors, double sign)> add_scaled{
    "add_scaled"};

/// Copies the bytes of all pieces. No list is empty.
inline constinit Kernel<void(std::span<const CopiedBytes>)> copy_bytes{"copy_bytes"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_add_residual(std::span<const CorrectedGradient> message);
void check_nearest_factors(std::span<const DecodedPair> message, const Tensor& factors);
void check_add_scaled(std::span<const ScaledAddition> message, const Tensor& factors);
void check_copy_bytes(std::span<const CopiedBytes> copies);

}  // namespace tern::kernels
