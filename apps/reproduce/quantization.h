#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/apps/reproduce/sample.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"

namespace tern::reproduce {

/// What vectors have independent elements of, around 0; `constant`: 1 or −1, where Lemma 3.1 of QSGD is nearly tight.
enum class Distribution : uint8_t { gauss, uniform, laplace, constant };

std::span<const Distribution> distributions();
const char* to_string(Distribution distribution);

/// Of all that these experiments draw.
inline constexpr uint64_t kSeed = 1;

/// f32 [n].
Tensor drawn_vector(Distribution distribution, int64_t n, uint64_t seed);

/// How a codec's draws Q(v) of one vector v spread, in QSGD's Lemma 3.1's terms.
struct QuantizationSample {
  Sample along;     ///< ⟨Q(v), v⟩ / ‖v‖²: 1 where unbiased
  Sample variance;  ///< ‖Q(v) − v‖² / ‖v‖²
  Sample nonzeros;  ///< ‖Q(v)‖₀
  /// ‖mean of Q(v) − v‖², relative to what independent errors of the measured variance leave: 1 where unbiased, about
  /// bias² · draws / variance more where not; 0 where every draw is v.
  double mean_error = 0;
};

/// Of `draws` messages that `codec` makes of `v`, f32 [n], each decoded.
QuantizationSample sample_quantization(GradientCodec& codec, const Tensor& v, int64_t draws);

/// What equation (4) of QSGD gives for v in buckets of `bucket` (0: all of v) with the 2-norm or the largest magnitude.
struct ExpectedQuantization {
  double variance = 0;  ///< E‖Q(v) − v‖² / ‖v‖² = Σ (norm/s)² f (1 − f) / ‖v‖², f the fraction of |v_i| s / norm
  double nonzeros = 0;  ///< E‖Q(v)‖₀ = Σ min(1, |v_i| s / norm)
};
struct QuantizationSettings {
  int64_t levels = 1, bucket = 0;
  bool by_maximum = false;
};
ExpectedQuantization expected_quantization(const QuantizationSettings& settings, const Tensor& v);

/// Lemma 3.1 (ii), relative to ‖v‖²: min(n/s², √n/s); n the length of a bucket.
double variance_bound(double n, double s);
/// Lemma 3.1 (iii): s(s + √n).
double nonzeros_bound(double n, double s);

/// The whole numbers that a codec of one scaler a bucket draws for `v` in one step.
std::vector<int32_t> drawn_levels(const GradientCodec& codec, const Tensor& v, uint32_t step);

/// Bits of one message of levels, beside the norm's 32.
struct EliasBits {
  int64_t sparse = 0;  ///< QSGD section 3.1: distances between non-zeros, signs, sizes; after the count of non-zeros
  int64_t dense = 0;   ///< for every element its size plus 1, and a sign unless it is zero
};
EliasBits elias_bits(std::span<const int32_t> levels);

/// Theorem 3.2, its o(1) taken as 0: (3 + 3/2 log₂(2(s² + n) / (s(s + √n)))) s(s + √n) + 32 bits a message.
double theorem_bits(double n, double s);
/// Corollary 3.3, s = √n: 2.8n + 32 bits a message.
double corollary_bits(double n);

}  // namespace tern::reproduce
