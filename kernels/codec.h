#pragma once

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"

// Gradient codecs' loops: statistics, stochastic rounding to a few levels (TernGrad eq. 1-3 with one level, QSGD eq.
// 4), and back. Every target gives the same bits. Gradients are f32, row-major; a bucket is `bucket` consecutive
// elements, the last one may be short; bucket 0 is the whole tensor.

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

/// statistics: f64 [buckets, 3], of each bucket max |g|, Σg and Σg², summed in the fixed order of codec_arithmetic.h.
/// Σg² is NaN or infinite where and only where an element is.
inline constinit Kernel<void(const Tensor& g, int64_t bucket, Tensor& statistics)> gradient_statistics{
    "gradient_statistics"};

/// codes [code_bytes(n, code_bits(levels))], u8: each element as a number of units of its bucket, rounded at random to
/// a neighbouring whole one so that its expectation is the element clipped to ±levels·unit. units: f32 [buckets],
/// finite, not negative; below 2^-110 they count as 0. The draws are `key`'s, as codec_arithmetic.h lays them out.
inline constinit Kernel<void(const Tensor& g, const Tensor& units, int64_t bucket, int64_t levels, const RandomKey& key,
                             Tensor& codes)>
    quantize{"quantize"};

/// The length of a bucket that QSGD divides by (section 2, and section 4's "max").
enum class BucketNorm : uint8_t { l2, max };

/// QSGD's encoder in one pass: units [buckets], f32 = norm of each bucket / levels, and `quantize` with them. Where an
/// element is NaN or infinite, so is its bucket's unit.
inline constinit Kernel<void(const Tensor& g, BucketNorm norm, int64_t bucket, int64_t levels, const RandomKey& key,
                             Tensor& units, Tensor& codes)>
    norm_quantize{"norm_quantize"};

/// sum += code · unit, elementwise: f32, without fused multiply-add.
inline constinit Kernel<void(const Tensor& codes, const Tensor& units, int64_t bucket, int64_t levels, Tensor& sum)>
    dequantize_add{"dequantize_add"};

/// Errors that name the operation where arguments do not fit each other.
void check_quantize(const char* operation, const Tensor& g, const Tensor& units, int64_t bucket, int64_t levels,
                    const Tensor& codes);
void check_gradient_statistics(const Tensor& g, int64_t bucket, const Tensor& statistics);

}  // namespace tern::kernels
