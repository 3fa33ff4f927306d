#include "tern/data/mel_spectrogram.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tern {
namespace {

/// A sound that rises again and again, with noise.
std::vector<int16_t> sirens(int64_t samples) {
  std::vector<int16_t> sound;
  uint32_t state = 12345;
  for (int64_t i = 0; i < samples; ++i) {
    state = (state * 1103515245u + 12345u) & 0x7fffffffu;
    sound.push_back(static_cast<int16_t>((i * i / 40 % 400 - 200) * 50 + (state >> 16) % 2000 - 1000));
  }
  return sound;
}

std::vector<float> spectrogram(const std::vector<int16_t>& sound) {
  std::vector<float> features(MelSpectrogram::kBands * MelSpectrogram::kFrames);
  MelSpectrogram().compute(sound, features);
  return features;
}

struct Feature {
  int band, frame;
  double decibels;
};

void expect_features(const std::vector<float>& features, double mean, const std::vector<Feature>& some) {
  EXPECT_NEAR(std::accumulate(features.begin(), features.end(), 0.0) / static_cast<double>(features.size()), mean,
              1e-3);
  for (const auto& [band, frame, decibels] : some)
    EXPECT_NEAR(features[static_cast<size_t>(band * MelSpectrogram::kFrames + frame)], decibels, 1e-3)
        << "band " << band << ", frame " << frame;
}

// Golden values: librosa 0.11.0, power_to_db(melspectrogram(y=sirens / 32768, sr=16000, n_mels=128,
// pad_mode="constant"), ref=max), in f64.
TEST(MelSpectrogram, EqualsLibrosaOnAShortClip) {
  expect_features(spectrogram(sirens(12'000)), -30.953265,
                  {{0, 0, -4.8604},
                   {0, 31, -80},
                   {1, 5, -18.6614},
                   {3, 17, -16.7637},
                   {10, 2, -26.0669},
                   {25, 9, -21.1067},
                   {40, 20, -20.6456},
                   {55, 12, -21.8421},
                   {63, 31, -80},
                   {70, 23, -16.4254},
                   {80, 1, -16.2297},
                   {90, 22, -13.2938},
                   {100, 15, -20.3209},
                   {110, 6, -13.5377},
                   {120, 19, -17.8366},
                   {127, 8, -8.2391}});
}

TEST(MelSpectrogram, EqualsLibrosaOnAClipThatIsCut) {
  expect_features(spectrogram(sirens(17'000)), -17.853332,
                  {{0, 31, -5.2591}, {63, 31, -17.3247}, {70, 23, -15.9235}, {90, 22, -13.2939}});
}

TEST(MelSpectrogram, SilenceIsZeroDecibels) {
  for (const auto& sound : {std::vector<int16_t>(16'000), std::vector<int16_t>{}})
    EXPECT_EQ(spectrogram(sound), std::vector<float>(MelSpectrogram::kBands * MelSpectrogram::kFrames));
}

}  // namespace
}  // namespace tern
