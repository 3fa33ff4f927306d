#include "tern/data/generated.h"

#include <algorithm>
#include <array>

#include "tern/core/random.h"
#include "tern/data/chance.h"

// Uses only + − × ÷ on floats, without contraction. IEEE 754 defines their rounding, so all machines give the same
// bytes.
namespace tern {
namespace {

constexpr int64_t kTrainSize = 700 * kToneClasses, kTestSize = 100 * kToneClasses;
constexpr std::array<float, 5> kSecondNote = {-18, -9, 0, 9, 18};          // bands above the first note
constexpr std::array<float, 7> kThirdNote = {-18, -12, -6, 0, 6, 12, 18};  // bands above the second note
constexpr float kOctave = 40;

/// Pitch and loudness of a melody over time.
class Melody {
 public:
  Melody(int64_t label, Chance& chance) {
    notes_[0] = chance.uniform(38, 50);
    notes_[1] = notes_[0] + kSecondNote[static_cast<size_t>(label / 7)] + chance.around_zero(2);
    notes_[2] = notes_[1] + kThirdNote[static_cast<size_t>(label % 7)] + chance.around_zero(2);
    length_ = chance.uniform(6.5f, 9);
    begin_ = chance.uniform(0, static_cast<float>(kToneFrames) - 3 * length_);
    glide_ = chance.uniform(0.1f, 0.4f);
    loudness_ = chance.uniform(110, 240);
    octave_ = chance.uniform(0.2f, 0.8f);
  }

  float pitch(float frame) const {
    const float note = (frame - begin_) / length_;
    const auto current = static_cast<size_t>(std::clamp(note, 0.0f, 2.0f));
    const size_t next = std::min<size_t>(current + 1, 2);
    const float towards = std::clamp((note - static_cast<float>(current) - (1 - glide_)) / glide_, 0.0f, 1.0f);
    return notes_[current] + (notes_[next] - notes_[current]) * towards;
  }
  float loudness(float frame) const {
    const float from_edge = std::min(frame - begin_, begin_ + 3 * length_ - frame);
    return loudness_ * std::clamp(from_edge + 0.5f, 0.0f, 1.0f);
  }
  float octave() const { return octave_; }

 private:
  std::array<float, 3> notes_{};
  float length_, begin_, glide_, loudness_, octave_;
};

void add_partial(float pitch, float loudness, float width, int64_t frame, std::span<float> sound) {
  const auto first = static_cast<int64_t>(std::max(pitch - width, 0.0f));
  const auto last = static_cast<int64_t>(std::min(pitch + width, static_cast<float>(kToneBands - 1)));
  for (int64_t band = first; band <= last; ++band) {
    const float away = (static_cast<float>(band) - pitch) / width;
    sound[static_cast<size_t>(band * kToneFrames + frame)] += loudness * std::max(0.0f, 1 - away * away);
  }
}

}  // namespace

int64_t draw_tones(uint64_t seed, Split split, int64_t index, std::span<uint8_t> loudness) {
  const int64_t label = index % kToneClasses;
  RandomKey key{.seed = seed, .purpose = Purpose::tones, .owner = static_cast<uint32_t>(index)};
  key.tensor = split == Split::train ? 0 : 2;
  Chance chance{RandomStream(key)};
  ++key.tensor;
  const RandomStream noise(key);
  const Melody melody(label, chance);
  const float width = chance.uniform(1.5f, 3), hiss = chance.uniform(20, 70) / 256;

  std::array<float, static_cast<size_t>(kToneBands * kToneFrames)> sound{};
  for (int64_t frame = 0; frame < kToneFrames; ++frame) {
    const auto time = static_cast<float>(frame);
    const float pitch = melody.pitch(time), level = melody.loudness(time);
    add_partial(pitch, level, width, frame, sound);
    add_partial(pitch + kOctave, level * melody.octave(), width, frame, sound);
  }
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < loudness.size(); ++i) {
    if (i % 16 == 0) words = noise.block(static_cast<uint32_t>(i / 16));
    const auto byte = static_cast<float>(words[i / 4 % 4] >> (i % 4 * 8) & 0xffu);
    loudness[i] = static_cast<uint8_t>(std::clamp(sound[i] + hiss * byte, 0.0f, 255.0f));
  }
  return label;
}

MemoryDataset make_tones(uint64_t seed, Split split) {
  return draw_dataset({.channels = 1, .height = kToneBands, .width = kToneFrames, .classes = kToneClasses},
                      split == Split::train ? kTrainSize : kTestSize,
                      [=](int64_t index, std::span<uint8_t> pixels) { return draw_tones(seed, split, index, pixels); });
}

}  // namespace tern
