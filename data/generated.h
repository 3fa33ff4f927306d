#pragma once

#include <cstdint>
#include <span>

#include "tern/data/dataset.h"

namespace tern {

inline constexpr int64_t kDigitSide = 28;

/// Draws digit `index` of a split, similar to handwriting, into `pixels` (28×28, white on black). Returns its label,
/// index mod 10. A pure function of its arguments; it gives the same bytes on every machine.
int64_t draw_digit(uint64_t seed, Split split, int64_t index, std::span<uint8_t> pixels);

/// Generates the built-in data set: 40,000 digits for training or 8,000 for testing, with balanced labels. Draws them
/// in parallel and keeps them in memory. Digits are shifted and slanted, and each digit has three styles, so a linear
/// classifier reaches only 80 %.
MemoryDataset make_digits(uint64_t seed, Split split);

inline constexpr int64_t kShapeKinds = 10;

/// Generated colour pictures of `side`×`side` pixels. Each shows one shape, rotated and tinted, near the middle of a
/// shaded and noisy background. The label, index mod 10, is the kind of shape: disc, ring, crescent, half disc,
/// triangle, square, bar, cross, pentagram or hexagram. Colour and position do not depend on the kind, so a linear
/// classifier cannot solve the task. `read` draws the picture: a pure function of seed, split, index and side, with the
/// same bytes on every machine.
class Shapes final : public ImageDataset {
 public:
  /// 20,000 pictures for training or 4,000 for testing; a tenth of that if `side` is above 64 pixels.
  Shapes(uint64_t seed, Split split, int64_t side);

  int64_t size() const override;
  ImageSpec spec() const override;
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;
  /// Writes 1 to each of `side`×`side` pixels if the shape covers half of it or more, and 0 if not.
  void read_mask(int64_t index, std::span<uint8_t> mask) const;

 private:
  uint64_t seed_;
  Split split_;
  int64_t side_;
};

/// Bands of pitch and frames of time: 4096 values per example, the same number as IST's spectrograms of spoken words.
inline constexpr int64_t kToneBands = 128, kToneFrames = 32, kToneClasses = 35;

/// Draws the spectrogram of melody `index` of a split into `loudness` [kToneBands, kToneFrames]. Returns its label,
/// index mod 35. A melody has three notes. The pitch glides from note to note. Each note also sounds its octave, and
/// there is noise. The label gives two intervals: from the first note to the second (5 values), and from the second to
/// the third (7 values). The first note, the start, the tempo and the loudness are random and independent of the label.
/// A pure function of its arguments; it gives the same bytes on every machine.
int64_t draw_tones(uint64_t seed, Split split, int64_t index, std::span<uint8_t> loudness);

/// Generates 24,500 melodies for training or 3,500 for testing, with balanced labels. Draws them in parallel and keeps
/// them in memory. Only differences of pitch distinguish the classes, so a linear classifier reaches only 51 %. A
/// perceptron with 512 hidden neurons reaches 97 % in three epochs.
MemoryDataset make_tones(uint64_t seed, Split split);

}  // namespace tern
