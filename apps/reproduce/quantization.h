#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/apps/reproduce/sample.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"

namespace tern::reproduce {

/// The distribution of a vector's independent elements, symmetric about 0. `constant`: 1 or −1; for these, Lemma 3.1 of
/// QSGD is nearly tight.
enum class Distribution : uint8_t { gauss, uniform, laplace, constant };

std::span<const Distribution> distributions();
const char* to_string(Distribution distribution);

/// The seed of all vectors in these experiments.
inline constexpr uint64_t kSeed = 1;

/// A random vector, f32 [n].
Tensor drawn_vector(Distribution distribution, int64_t n, uint64_t seed);

/// Statistics of a codec's draws Q(v) for one vector v, for Lemma 3.1 of QSGD.
struct QuantizationSample {
  Sample along;     ///< ⟨Q(v), v⟩ / ‖v‖²: 1 if unbiased
  Sample variance;  ///< ‖Q(v) − v‖² / ‖v‖²
  Sample nonzeros;  ///< ‖Q(v)‖₀
  /// ‖mean of Q(v) − v‖² over its expectation for unbiased, independent draws of the measured variance: about 1 if
  /// unbiased, else more by about bias² · draws / variance. 0 if every draw equals v.
  double mean_error = 0;
};

/// Encodes and decodes `v`, f32 [n], `draws` times with `codec`.
QuantizationSample sample_quantization(GradientCodec& codec, const Tensor& v, int64_t draws);

/// The expected values by equation (4) of QSGD for v.
struct ExpectedQuantization {
  double variance = 0;  ///< E‖Q(v) − v‖² / ‖v‖² = Σ (norm/s)² f (1 − f) / ‖v‖², f: the fraction of |v_i| s / norm
  double nonzeros = 0;  ///< E‖Q(v)‖₀ = Σ min(1, |v_i| s / norm)
};
struct QuantizationSettings {
  int64_t levels = 1, bucket = 0;
  bool by_maximum = false;
};
ExpectedQuantization expected_quantization(const QuantizationSettings& settings, const Tensor& v);

/// Lemma 3.1 (ii), relative to ‖v‖²: min(n/s², √n/s). n is the length of a bucket.
double variance_bound(double n, double s);
/// Lemma 3.1 (iii): s(s + √n).
double nonzeros_bound(double n, double s);

/// The levels that a codec with one scaler per bucket draws for `v` in one step. Throws Error if the codec has no
/// levels.
std::vector<int32_t> drawn_levels(const GradientCodec& codec, const Tensor& v, uint32_t step);

/// Bits of one message of levels, without the 32 bits of the norm.
struct EliasBits {
  int64_t sparse = 0;  ///< QSGD section 3.1: count of non-zeros; then for each its distance, sign and size
  int64_t dense = 0;   ///< for each element its size plus 1, and a sign unless it is zero
};
EliasBits elias_bits(std::span<const int32_t> levels);

/// Theorem 3.2 with o(1) = 0: (3 + 3/2 log₂(2(s² + n) / (s(s + √n)))) s(s + √n) + 32 bits per message.
double theorem_bits(double n, double s);
/// Corollary 3.3 with s = √n: 2.8n + 32 bits per message.
double corollary_bits(double n);

}  // namespace tern::reproduce
