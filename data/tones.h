#pragma once

#include <cstdint>
#include <span>

#include "tern/data/dataset.h"

namespace tern {

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
