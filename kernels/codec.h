#pragma once

#include <span>

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"

// The loops of the gradient codecs: statistics, stochastic rounding to a few levels (TernGrad eq. 1-3 with one level,
// QSGD eq. 4), and decoding. Every target gives the same bits, unless a value is NaN. One call handles all gradients of
// a message. Gradients are f32, row-major. A bucket is `bucket` consecutive elements, and the last one may be short. If
// `bucket` is 0, the whole tensor is one bucket.

namespace tern::kernels {

/// Number of buckets of a tensor of n elements; 0 if the tensor is empty.
constexpr int64_t bucket_count(int64_t n, int64_t bucket) {
  return n == 0 ? 0 : bucket == 0 ? 1 : (n + bucket - 1) / bucket;
}

/// Number of bits of one code with `levels` levels on each side of zero. A code holds the sign and the level.
constexpr int code_bits(int64_t levels) {
  int bits = 1;
  while (levels >> (bits - 1) != 0) ++bits;
  return bits;
}
inline constexpr int64_t kMostLevels = 32767;

inline constexpr int64_t kCodesPerWord = 32;

/// Number of bytes of n codes. Codes are stored as bit planes. Each 32 elements have one 32-bit little-endian word of
/// their signs, then one word for each bit of their levels, lowest bit first. If the last group is short, its words are
/// cut to whole bytes. Level 0 has sign 0.
constexpr int64_t code_bytes(int64_t n, int bits) { return bits * (4 * (n / 32) + (n % 32 + 7) / 8); }

/// A gradient of a message, and the tensor for its statistics.
struct MeasuredGradient {
  Tensor g;
  Tensor statistics;  ///< f64 [buckets, 3]
};
/// A gradient of a message, and the tensor for its units.
struct UnitGradient {
  Tensor g;
  Tensor units;  ///< f32 [buckets]
};
/// A gradient of a message, and its coded form.
struct CodedGradient {
  Tensor g;
  Tensor units;  ///< f32 [buckets]
  Tensor codes;  ///< u8 [code_bytes(n, code_bits(levels))]
  RandomKey key;
  Tensor clips = {};  ///< f32 [buckets]; `quantize` first clips elements to ± this; undefined: it does not
};
/// A gradient in the messages of several ranks.
struct DecodedGradient {
  Tensor sum;              ///< f32, row-major; the decoded messages are added to it
  int64_t first_unit = 0;  ///< index of its first bucket's unit among the units of all gradients
  int64_t codes_at = 0;    ///< offset in bytes of its codes in each message
};
template <class Gradient>
const Tensor& placement_of(std::span<const Gradient> message, Tensor Gradient::*tensor) {
  static const Tensor undefined;
  return message.empty() ? undefined : message.front().*tensor;
}
inline const Tensor& placement(std::span<const MeasuredGradient> message) {
  return placement_of(message, &MeasuredGradient::g);
}
inline const Tensor& placement(std::span<const UnitGradient> message) {
  return placement_of(message, &UnitGradient::g);
}
inline const Tensor& placement(std::span<const CodedGradient> message) {
  return placement_of(message, &CodedGradient::g);
}
inline const Tensor& placement(std::span<const DecodedGradient> message) {
  return placement_of(message, &DecodedGradient::sum);
}

/// statistics = max |g|, Σg and Σg² of each bucket, summed in the fixed order of codec_arithmetic.h. Σg² is NaN or
/// infinite if and only if an element of the bucket is NaN or infinite.
inline constinit Kernel<void(std::span<const MeasuredGradient>, int64_t bucket)> gradient_statistics{
    "gradient_statistics"};

/// The norm of a bucket, from its statistics. `l2` and `max` are QSGD's (section 2, and "max" in section 4). TernGrad's
/// are `max` without clipping, `deviations`, clip·σ, and `clipped`, min(max|g|, clip·σ) (eq. 21). A bucket of one
/// element has no deviation; then both are `max`.
enum class BucketNorm : uint8_t { l2, max, clipped, deviations };
/// The unit of a bucket: its norm / levels.
struct UnitRule {
  BucketNorm norm = BucketNorm::max;
  int64_t levels = 1;
  double clip = 0;  ///< for `clipped` and `deviations`
};

/// units = the unit of each bucket. If an element is NaN or infinite, so is the unit of its bucket.
inline constinit Kernel<void(std::span<const UnitGradient>, const UnitRule& rule, int64_t bucket)> gradient_units{
    "gradient_units"};

/// codes = each element divided by the unit of its bucket, clipped to [-levels, levels] and rounded at random to a
/// neighbouring integer. The expectation of code · unit is the element clipped to ±levels·unit, and to ±clips before if
/// there are clips. All gradients of a message have clips, or none. Units must be finite and not negative; units below
/// 2^-110 count as 0. `key` gives the random numbers, in the layout of
/// codec_arithmetic.h.
inline constinit Kernel<void(std::span<const CodedGradient>, int64_t bucket, int64_t levels)> quantize{"quantize"};

/// QSGD's encoder in one pass: `gradient_units` with the norm l2 or max, then `quantize` with these units.
inline constinit Kernel<void(std::span<const CodedGradient>, BucketNorm norm, int64_t bucket, int64_t levels)>
    norm_quantize{"norm_quantize"};

/// sum += code · unit elementwise, one message after another, in f32 without fused multiply-add. messages: u8
/// [messages, bytes]. units: f32 [units of all gradients], shared by all messages. If `units` is undefined, each
/// message begins with its own units.
inline constinit Kernel<void(std::span<const DecodedGradient>, const Tensor& messages, const Tensor& units,
                             int64_t bucket, int64_t levels)>
    dequantize_add{"dequantize_add"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_statistics(std::span<const MeasuredGradient> message, int64_t bucket);
void check_units(std::span<const UnitGradient> message, const UnitRule& rule, int64_t bucket);
void check_quantize(const char* operation, std::span<const CodedGradient> message, int64_t bucket, int64_t levels);
void check_dequantize(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                      int64_t bucket, int64_t levels);

/// f32 [messages, units]: the units at the start of each message, for messages on the CPU. If `units` is defined,
/// returns [1, units], which all messages share.
Tensor units_of(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units, int64_t bucket);

}  // namespace tern::kernels
