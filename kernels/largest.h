#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace tern::kernels {

/// Magnitudes of floats compare as integers by these bits; those of NaN and infinities are the largest.
constexpr uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

/// The places of the k elements of largest magnitude, in rising order; of equal magnitudes, the first ones.
/// `magnitudes` are `magnitude_bits`. 1 <= k <= their number.
std::vector<uint32_t> largest_places(std::span<const uint32_t> magnitudes, int64_t k);

}  // namespace tern::kernels
