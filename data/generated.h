#pragma once

#include <cstdint>
#include <span>

#include "tern/data/dataset.h"

namespace tern {

inline constexpr int64_t kDigitSide = 28;

/// Draws handwritten-looking digit `index` of a split into `pixels` (28×28, white on black) and returns its label,
/// index mod 10. A pure function of its arguments, the same bytes on every machine.
int64_t draw_digit(uint64_t seed, Split split, int64_t index, std::span<uint8_t> pixels);

/// The embedded data set: 40,000 digits to train on or 8,000 to test on, drawn in parallel and kept in memory, with
/// balanced labels. Shifts, slants and three ways to write each digit put it beyond a linear classifier (80 %).
MemoryDataset make_digits(uint64_t seed, Split split);

inline constexpr int64_t kShapeKinds = 10;

/// Generated pictures of `side`×`side` pixels in colour: each one shape, turned, tinted and somewhere near the middle,
/// before a shaded and grainy ground. The label, index mod 10, is the kind: disc, ring, crescent, half disc, triangle,
/// square, bar, cross, pentagram or hexagram. Drawn as they are read: a pure function of seed, split, index and side,
/// the same bytes on every machine. Neither colour nor place tells kinds apart, which puts them beyond a linear
/// classifier.
class Shapes final : public Dataset {
 public:
  /// 20,000 pictures to train on or 4,000 to test on; above 64 pixels a tenth of that.
  Shapes(uint64_t seed, Split split, int64_t side);

  int64_t size() const override;
  ImageSpec spec() const override;
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;

 private:
  uint64_t seed_;
  Split split_;
  int64_t side_;
};

/// Bands of pitch and frames of time: 4096 values, as many as IST's spectrograms of spoken words have.
inline constexpr int64_t kToneBands = 128, kToneFrames = 32, kToneClasses = 35;

/// Draws the spectrogram of melody `index` of a split into `loudness` [kToneBands, kToneFrames] and returns its label,
/// index mod 35. A melody is three notes that glide into each other, each with its octave, in noise; the label says how
/// far the second lies above or below the first (5 ways) and the third above or below the second (7 ways), and nothing
/// else: the first note, the beginning, the tempo and the loudness are random. A pure function of its arguments, the
/// same bytes on every machine.
int64_t draw_tones(uint64_t seed, Split split, int64_t index, std::span<uint8_t> loudness);

/// The generated data set: 24,500 melodies to train on or 3,500 to test on, drawn in parallel and kept in memory, with
/// balanced labels. Only differences of pitch tell the classes apart, which puts it beyond a linear classifier (51 %);
/// a perceptron of 512 hidden neurons finds 97 % in three epochs.
MemoryDataset make_tones(uint64_t seed, Split split);

}  // namespace tern
