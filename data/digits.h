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

}  // namespace tern
