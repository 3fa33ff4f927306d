#include "tern/data/generated.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/data/chance.h"

// Uses only + − × ÷ and √ on floats, without contraction. IEEE 754 defines their rounding, so all machines give the
// same bytes.
namespace tern {
namespace {

/// A distance-like function of a shape of size 1: below 1 inside, above 1 outside. Its slope at the edge is about 1.
using Reach = float (*)(float x, float y);

float disc(float x, float y) { return std::sqrt(x * x + y * y); }
float ring(float x, float y) { return std::max(disc(x, y), 1.55f - disc(x, y)); }
float crescent(float x, float y) { return std::max(disc(x, y), 1.75f - disc(x - 0.5f, y)); }
float half_disc(float x, float y) { return std::max(disc(x, y - 0.4f), 0.6f + y); }
float triangle(float x, float y) { return std::max(-y, 0.5f * y + 0.8660254f * std::abs(x)) + 0.4f; }
float square(float x, float y) { return std::max(std::abs(x), std::abs(y)) + 0.2f; }
float bar(float x, float y) { return std::max(std::abs(x) + 0.65f, std::abs(y)); }
float cross(float x, float y) { return std::min(bar(x, y), bar(y, x)); }
float hexagram(float x, float y) { return std::min(triangle(x, y), triangle(x, -y)); }

/// A point is inside if it is inside at least four of the five lines.
float pentagram(float x, float y) {
  const float side = std::abs(x);
  std::array<float, 5> out = {y, 0.30901699f * y + 0.95105652f * side, 0.30901699f * y - 0.95105652f * side,
                              -0.80901699f * y + 0.58778525f * side, -0.80901699f * y - 0.58778525f * side};
  std::ranges::nth_element(out, out.end() - 2);
  return *(out.end() - 2) + 0.65f;
}

constexpr std::array<Reach, kShapeKinds> kReaches = {disc,   ring, crescent, half_disc, triangle,
                                                     square, bar,  cross,    pentagram, hexagram};
constexpr float kFarthest = 1.5f;  // no shape reaches farther

/// Maps pixels to the coordinates of the shape, in which its size is 1.
class Placement {
 public:
  Placement(float side, Chance& chance)
      : centre_x_(side * (0.5f + chance.around_zero(0.2f))),
        centre_y_(side * (0.5f + chance.around_zero(0.2f))),
        size_(side * chance.uniform(0.2f, 0.32f)) {
    const float t = chance.uniform(-1, 1), turn = chance.below(2) == 0 ? 1.0f : -1.0f;
    cosine_ = turn * (1 - t * t) / (1 + t * t);
    sine_ = turn * 2 * t / (1 + t * t);
  }

  /// The fraction of the pixel at (x, y) that the shape covers, with a soft edge.
  float cover(Reach reach, float x, float y) const {
    const float dx = (x - centre_x_) / size_, dy = (y - centre_y_) / size_;
    if (dx * dx + dy * dy > kFarthest * kFarthest) return 0;
    return std::clamp((1 - reach(cosine_ * dx + sine_ * dy, cosine_ * dy - sine_ * dx)) * size_ + 0.5f, 0.0f, 1.0f);
  }

 private:
  float centre_x_, centre_y_, size_, cosine_ = 1, sine_ = 0;
};

/// One channel of the colours: the background, with a linear gradient, and the shape.
struct Tint {
  float ground, across, down, shape;

  explicit Tint(Chance& chance)
      : ground(chance.uniform(30, 225)), across(chance.around_zero(80)), down(chance.around_zero(80)) {
    const float contrast = chance.uniform(20, 120);
    shape = ground < 128 ? ground + contrast : ground - contrast;
  }
};

/// The key of the stream that places and tints a picture. The digits use the tensors 0 to 3.
RandomKey key_of(uint64_t seed, Split split, int64_t index) {
  return {.seed = seed,
          .purpose = Purpose::digits,
          .owner = static_cast<uint32_t>(index),
          .tensor = split == Split::train ? 4u : 6u};
}

}  // namespace

Shapes::Shapes(uint64_t seed, Split split, int64_t side) : seed_(seed), split_(split), side_(side) {
  check(side >= 8, "shapes: ", side, " pixels a side, expected 8 or more");
}

int64_t Shapes::size() const { return (split_ == Split::train ? 20000 : 4000) / (side_ > 64 ? 10 : 1); }

ImageSpec Shapes::spec() const { return {.channels = 3, .height = side_, .width = side_, .classes = kShapeKinds}; }

int64_t Shapes::read(int64_t index, std::span<uint8_t> pixels) const {
  check(0 <= index && index < size(), "shapes: example ", index, " of ", size());
  check(static_cast<int64_t>(pixels.size()) == spec().numel(), "shapes: room for ", pixels.size(),
        " bytes of pixels, an example has ", spec().numel());
  const int64_t label = index % kShapeKinds;
  RandomKey key = key_of(seed_, split_, index);
  Chance chance{RandomStream(key)};
  ++key.tensor;
  const RandomStream grain(key);
  const auto side = static_cast<float>(side_);
  const Placement placement(side, chance);
  const std::array<Tint, 3> tints = {Tint(chance), Tint(chance), Tint(chance)};
  const float noise = chance.uniform(4, 40) / 128;
  const Reach reach = kReaches[static_cast<size_t>(label)];

  std::array<uint32_t, 4> words{};
  size_t i = 0;
  for (int64_t row = 0; row < side_; ++row)
    for (int64_t column = 0; column < side_; ++column) {
      const float x = static_cast<float>(column) + 0.5f, y = static_cast<float>(row) + 0.5f;
      const float cover = placement.cover(reach, x, y);
      for (const Tint& tint : tints) {
        if (i % 16 == 0) words = grain.block(static_cast<uint32_t>(i / 16));
        const auto byte = static_cast<int>(words[i / 4 % 4] >> (i % 4 * 8) & 0xffu);
        const float ground = tint.ground + tint.across * (x / side - 0.5f) + tint.down * (y / side - 0.5f);
        const float value = ground + cover * (tint.shape - ground) + noise * static_cast<float>(byte - 128);
        pixels[i++] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
      }
    }
  return label;
}

void Shapes::read_mask(int64_t index, std::span<uint8_t> mask) const {
  check(0 <= index && index < size(), "shapes: example ", index, " of ", size());
  check(std::ssize(mask) == side_ * side_, "shapes: room for ", mask.size(), " pixels of a mask, expected ",
        side_ * side_);
  Chance chance{RandomStream(key_of(seed_, split_, index))};
  const Placement placement(static_cast<float>(side_), chance);
  const Reach reach = kReaches[static_cast<size_t>(index % kShapeKinds)];
  for (size_t i = 0; i < mask.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    const float x = static_cast<float>(place % side_) + 0.5f, y = static_cast<float>(place / side_) + 0.5f;
    mask[i] = placement.cover(reach, x, y) >= 0.5f;
  }
}

}  // namespace tern
