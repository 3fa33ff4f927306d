#pragma once

#include <span>

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"

// Gradient codecs' loops: statistics, stochastic rounding to a few levels (TernGrad eq. 1-3 with one level, QSGD eq.
// 4), and back. Every target gives the same bits. All gradients of a message in one call. They are f32, row-major; a
// bucket is `bucket` consecutive elements, the last one may be short; bucket 0 is the whole tensor.

namespace tern::kernels {

/// Buckets of a tensor of n elements; none where it is empty.
constexpr int64_t bucket_count(int64_t n, int64_t bucket) {
  return n == 0 ? 0 : bucket == 0 ? 1 : (n + bucket - 1) / bucket;
}

/// Bits of one code with `levels` levels on each side of zero: the sign and the level.
constexpr int code_bits(int64_t levels) {
  int bits = 1;
  while (levels >> (bits - 1) != 0) ++bits;
  return bits;
}
inline constexpr int64_t kMostLevels = 32767;

inline constexpr int64_t kCodesPerWord = 32;

/// Bytes of n codes. Codes are bit planes: each 32 elements are a word (little-endian) of their signs, then one of each
/// bit of their levels, the lowest first; the words of a last, short group are cut to whole bytes. Level 0 has sign 0.
constexpr int64_t code_bytes(int64_t n, int bits) { return bits * (4 * (n / 32) + (n % 32 + 7) / 8); }

/// A gradient of a message, and where its statistics go.
struct MeasuredGradient {
  Tensor g;
  Tensor statistics;  ///< f64 [buckets, 3]
};
/// A gradient of a message, and its coded form.
struct CodedGradient {
  Tensor g;
  Tensor units;  ///< f32 [buckets]
  Tensor codes;  ///< u8 [code_bytes(n, code_bits(levels))]
  RandomKey key;
};
/// A gradient in the messages of several ranks.
struct DecodedGradient {
  Tensor sum;              ///< f32, row-major: what the messages hold is added to it
  int64_t first_unit = 0;  ///< its first bucket's, among the units of all gradients
  int64_t codes_at = 0;    ///< the byte of each message at which its codes begin
};
template <class Gradient>
const Tensor& placement_of(std::span<const Gradient> message, Tensor Gradient::*tensor) {
  static const Tensor undefined;
  return message.empty() ? undefined : message.front().*tensor;
}
inline const Tensor& placement(std::span<const MeasuredGradient> message) {
  return placement_of(message, &MeasuredGradient::g);
}
inline const Tensor& placement(std::span<const CodedGradient> message) {
  return placement_of(message, &CodedGradient::g);
}
inline const Tensor& placement(std::span<const DecodedGradient> message) {
  return placement_of(message, &DecodedGradient::sum);
}

/// statistics = of each bucket max |g|, Σg and Σg², summed in the fixed order of codec_arithmetic.h. Σg² is NaN or
/// infinite where and only where an element is.
inline constinit Kernel<void(std::span<const MeasuredGradient>, int64_t bucket)> gradient_statistics{
    "gradient_statistics"};

/// codes = each element as a number of units of its bucket, rounded at random to a neighbouring whole one so that its
/// expectation is the element clipped to ±levels·unit. Units are finite, not negative; below 2^-110 they count as 0.
/// The draws are `key`'s, as codec_arithmetic.h lays them out.
inline constinit Kernel<void(std::span<const CodedGradient>, int64_t bucket, int64_t levels)> quantize{"quantize"};

/// The length of a bucket that QSGD divides by (section 2, and section 4's "max").
enum class BucketNorm : uint8_t { l2, max };

/// QSGD's encoder in one pass: units = norm of each bucket / levels, and `quantize` with them. Where an element is NaN
/// or infinite, so is its bucket's unit.
inline constinit Kernel<void(std::span<const CodedGradient>, BucketNorm norm, int64_t bucket, int64_t levels)>
    norm_quantize{"norm_quantize"};

/// sum += code · unit of each message in turn, elementwise: f32, without fused multiply-add. messages: u8 [messages,
/// bytes]. units: f32 [units of all gradients], for all messages; undefined: each message begins with its own.
inline constinit Kernel<void(std::span<const DecodedGradient>, const Tensor& messages, const Tensor& units,
                             int64_t bucket, int64_t levels)>
    dequantize_add{"dequantize_add"};

/// Errors that name the operation where arguments do not fit each other.
void check_statistics(std::span<const MeasuredGradient> message, int64_t bucket);
void check_quantize(const char* operation, std::span<const CodedGradient> message, int64_t bucket, int64_t levels);
void check_dequantize(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                      int64_t bucket, int64_t levels);

/// f32 [messages, units]: the units that messages on the CPU begin with; [1, units] where all share `units`.
Tensor units_of(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units, int64_t bucket);

}  // namespace tern::kernels
