#include "tern/data/generated.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <optional>

namespace tern {
namespace {

using Loudness = std::array<uint8_t, kToneBands * kToneFrames>;

Loudness drawn(uint64_t seed, Split split, int64_t index) {
  Loudness loudness;
  draw_tones(seed, split, index, loudness);
  return loudness;
}

TEST(Tones, AreTheSameBytesOnEveryMachine) {
  auto checksum = crc32(0, nullptr, 0);
  for (int64_t index = 0; index < 100; ++index) checksum = crc32(checksum, drawn(1, Split::train, index).data(), 4096);
  EXPECT_EQ(checksum, 1734166679u);
}

TEST(Tones, DependOnSeedSplitAndIndex) {
  EXPECT_NE(drawn(1, Split::train, 0), drawn(2, Split::train, 0));
  EXPECT_NE(drawn(1, Split::train, 0), drawn(1, Split::test, 0));
  EXPECT_NE(drawn(1, Split::train, 0), drawn(1, Split::train, kToneClasses));
}

TEST(Tones, AreBalancedAndMadeInParallelAsOneByOne) {
  const MemoryDataset tones = make_tones(4, Split::test);
  EXPECT_EQ(tones.spec(), (ImageSpec{.channels = 1, .height = 128, .width = 32, .classes = 35}));
  std::array<int64_t, kToneClasses> counts{};
  Loudness loudness;
  for (int64_t index = 0; index < tones.size(); ++index) {
    ++counts[static_cast<size_t>(tones.read(index, loudness))];
    ASSERT_EQ(loudness, drawn(4, Split::test, index)) << index;
  }
  for (const int64_t found : counts) EXPECT_EQ(found, tones.size() / kToneClasses);
}

/// The lowest band of a frame that is louder than all noise, or nullopt if there is none.
std::optional<int64_t> pitch(const Loudness& loudness, int64_t frame) {
  for (int64_t band = 0; band < kToneBands; ++band)
    if (loudness[static_cast<size_t>(band * kToneFrames + frame)] > 75) return band;
  return std::nullopt;
}

/// The number of bands from a melody's first note to its last note.
int64_t interval(const Loudness& loudness) {
  int64_t first = 0, last = kToneFrames - 1;
  while (!pitch(loudness, first)) ++first;
  while (!pitch(loudness, last)) --last;
  return *pitch(loudness, last - 1) - *pitch(loudness, first + 1);
}

TEST(Tones, EndAsFarFromTheirBeginningAsTheLabelSays) {
  for (int64_t index = 0; index < 20 * kToneClasses; ++index) {
    const int64_t label = index % kToneClasses, expected = 9 * (label / 7 - 2) + 6 * (label % 7 - 3);
    EXPECT_NEAR(static_cast<double>(interval(drawn(7, Split::train, index))), static_cast<double>(expected), 7);
  }
}

}  // namespace
}  // namespace tern
