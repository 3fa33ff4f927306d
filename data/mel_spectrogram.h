#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tern {

/// The log-mel spectrogram of a second of sound, as librosa computes it with `melspectrogram(n_fft=2048,
/// hop_length=512, n_mels=128)` and `power_to_db(ref=max)`: the input of IST's networks for spoken words. Immutable; it
/// computes in f64.
class MelSpectrogram {
 public:
  static constexpr int64_t kRate = 16'000;  ///< samples per second, and in a clip
  static constexpr int64_t kBands = 128;    ///< on Slaney's mel scale, from 0 to 8,000 Hz
  static constexpr int64_t kFrames = 32;    ///< of 2,048 samples under a periodic Hann window, every 512 samples

  MelSpectrogram();

  /// Writes the power of a clip to `features` [kBands, kFrames]: in dB relative to the largest, at least -80. The first
  /// frame's middle is the first sample. Zeros stand before and behind the clip; samples after the first kRate do not
  /// count. A clip of zeros gives zeros.
  void compute(std::span<const int16_t> samples, std::span<float> features) const;

 private:
  /// The triangle of a band over the frequencies of a spectrum.
  struct Filter {
    int64_t first = 0;  ///< first frequency with a weight
    std::vector<double> weights;
  };
  std::vector<double> window_;
  std::vector<Filter> filters_;
};

}  // namespace tern
