#pragma once

#include <cstdint>

#include "tern/apps/reproduce/sample.h"
#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"

namespace tern {

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

}  // namespace tern
