#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tern/core/random.h"
#include "tern/data/chance.h"
#include "tern/data/generated.h"

namespace tern {

/// A point of a pen stroke on a grid of 100×100; y points down. The same point twice makes a corner; {0, 0} lifts the
/// pen.
struct PenPoint {
  int8_t x, y;

  friend bool operator==(const PenPoint&, const PenPoint&) = default;
};

/// One way to write a digit: smooth curves through the points of each stroke. Unused points are {0, 0}.
using DigitStyle = std::array<PenPoint, 12>;

inline constexpr std::array<std::array<DigitStyle, 3>, 10> kDigitStyles = {{
    {{{{{50, 5}, {28, 18}, {20, 50}, {29, 82}, {50, 95}, {71, 82}, {80, 50}, {72, 18}, {50, 5}}},
      {{{62, 6}, {38, 14}, {22, 48}, {30, 86}, {50, 94}, {68, 80}, {76, 44}, {70, 16}, {52, 6}, {40, 12}}},
      {{{50, 4}, {34, 20}, {30, 50}, {34, 80}, {50, 96}, {66, 80}, {70, 50}, {66, 20}, {50, 4}}}}},
    {{{{{50, 4}, {50, 50}, {50, 96}}},
      {{{32, 26}, {52, 5}, {52, 5}, {52, 50}, {52, 96}}},
      {{{34, 24}, {52, 5}, {52, 5}, {51, 95}, {0, 0}, {32, 95}, {72, 95}}}}},
    {{{{{24, 26}, {34, 8}, {56, 5}, {74, 20}, {68, 45}, {46, 70}, {22, 94}, {22, 94}, {50, 93}, {80, 93}}},
      {{{26, 22}, {46, 5}, {72, 16}, {68, 44}, {42, 76}, {24, 92}, {20, 80}, {36, 76}, {58, 90}, {82, 88}}},
      {{{22, 14}, {50, 6}, {76, 20}, {64, 48}, {24, 92}, {24, 92}, {52, 90}, {78, 96}}}}},
    {{{{{24, 16}, {45, 5}, {70, 14}, {68, 36}, {44, 47}, {44, 47}, {74, 58}, {77, 80}, {52, 95}, {22, 86}}},
      {{{24, 8}, {74, 8}, {74, 8}, {46, 42}, {46, 42}, {74, 56}, {74, 84}, {48, 96}, {22, 86}}},
      {{{28, 10}, {56, 6}, {72, 24}, {58, 44}, {40, 48}, {62, 50}, {78, 70}, {62, 94}, {34, 96}, {20, 84}}}}},
    {{{{{30, 8}, {26, 34}, {22, 58}, {22, 58}, {52, 58}, {82, 57}, {0, 0}, {64, 12}, {64, 54}, {62, 96}}},
      {{{62, 5}, {40, 36}, {18, 66}, {18, 66}, {50, 66}, {84, 65}, {0, 0}, {62, 5}, {62, 50}, {62, 96}}},
      {{{28, 8}, {24, 40}, {36, 55}, {58, 52}, {72, 38}, {74, 8}, {74, 8}, {70, 52}, {66, 96}}}}},
    {{{{{74, 7}, {34, 7}, {34, 7}, {30, 44}, {30, 44}, {52, 38}, {76, 54}, {74, 82}, {50, 95}, {22, 86}}},
      {{{36, 8}, {32, 44}, {32, 44}, {56, 40}, {78, 60}, {68, 88}, {44, 96}, {22, 88}, {0, 0}, {36, 8}, {78, 6}}},
      {{{70, 10}, {40, 10}, {40, 10}, {28, 40}, {50, 46}, {72, 62}, {60, 90}, {24, 94}}}}},
    {{{{{68, 6}, {42, 22}, {24, 58}, {30, 88}, {54, 95}, {75, 78}, {66, 57}, {42, 58}, {26, 74}}},
      {{{58, 4}, {34, 38}, {23, 70}, {38, 94}, {66, 90}, {74, 68}, {54, 54}, {28, 68}}},
      {{{72, 12}, {50, 6}, {28, 34}, {24, 74}, {48, 96}, {74, 76}, {54, 56}, {26, 70}}}}},
    {{{{{22, 8}, {78, 8}, {78, 8}, {58, 50}, {42, 96}}},
      {{{22, 9}, {76, 8}, {76, 8}, {56, 50}, {44, 96}, {0, 0}, {34, 52}, {70, 50}}},
      {{{22, 20}, {26, 8}, {50, 12}, {78, 8}, {78, 8}, {56, 46}, {50, 96}}}}},
    {{{{{70, 20}, {50, 5}, {28, 18}, {36, 38}, {62, 54}, {77, 76}, {52, 96}, {24, 78}, {36, 56}, {64, 38}, {70, 20}}},
      {{{50, 5}, {30, 24}, {50, 46}, {70, 24}, {50, 5}, {0, 0}, {50, 46}, {22, 70}, {50, 96}, {78, 70}, {50, 46}}},
      {{{74, 10}, {46, 6}, {30, 24}, {52, 46}, {74, 70}, {54, 95}, {28, 80}, {42, 54}, {70, 26}, {74, 10}}}}},
    {{{{{72, 26}, {52, 5}, {27, 20}, {30, 46}, {54, 52}, {72, 28}, {72, 28}, {70, 60}, {68, 96}}},
      {{{70, 20}, {46, 5}, {25, 28}, {42, 50}, {66, 42}, {74, 18}, {74, 18}, {76, 56}, {62, 88}, {32, 94}}},
      {{{74, 12}, {44, 6}, {26, 26}, {38, 46}, {60, 42}, {74, 12}, {74, 12}, {62, 54}, {52, 96}}}}},
}};

}  // namespace tern

// Uses only + − × ÷ and √ on floats, without contraction. IEEE 754 defines their rounding, so all machines give the
// same bytes.
namespace tern {
namespace {

constexpr int64_t kTrainSize = 40000;
constexpr int64_t kTestSize = 8000;
constexpr int kSide = kDigitSide;
constexpr int kPointsPerSpan = 5;

struct Point {
  float x, y;
};

/// Maps the grid of the strokes to pixels: scale, shear, rotation and shift of one writer.
class Hand {
 public:
  explicit Hand(Chance& chance) {
    const float height = chance.uniform(0.15f, 0.22f);
    const float width = height * chance.uniform(0.7f, 1.05f);
    const float shear = chance.around_zero(0.35f) - 0.1f;
    const float angle = chance.around_zero(0.35f);
    const float cosine = 1.0f - angle * angle * 0.5f, sine = angle - angle * angle * angle / 6.0f;
    across_ = {width * cosine, width * sine};
    down_ = {height * (shear * cosine - sine), height * (shear * sine + cosine)};
    centre_ = {kSide * 0.5f + chance.around_zero(4.0f), kSide * 0.5f + chance.around_zero(4.0f)};
  }
  Point place(float x, float y) const {
    return {centre_.x + across_.x * x + down_.x * y, centre_.y + across_.y * x + down_.y * y};
  }

 private:
  Point across_, down_, centre_;
};

/// Squared distance from each pixel's centre to the nearest line. It is exact only for pixels near a line; others hold
/// kFar or a larger value than the true one.
class Canvas {
 public:
  Canvas() { squares_.fill(kFar); }

  void line(Point from, Point to, float reach) {
    const Point along = {to.x - from.x, to.y - from.y};
    const float length = along.x * along.x + along.y * along.y;
    const int left = first(std::min(from.x, to.x) - reach), right = last(std::max(from.x, to.x) + reach);
    const int top = first(std::min(from.y, to.y) - reach), bottom = last(std::max(from.y, to.y) + reach);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const Point offset = {static_cast<float>(x) + 0.5f - from.x, static_cast<float>(y) + 0.5f - from.y};
        const float dot = offset.x * along.x + offset.y * along.y;
        const float t = length > 0 ? std::clamp(dot / length, 0.0f, 1.0f) : 0.0f;
        const float dx = offset.x - t * along.x, dy = offset.y - t * along.y;
        float& square = squares_[static_cast<size_t>(y * kSide + x)];
        square = std::min(square, dx * dx + dy * dy);
      }
    }
  }

  float distance(size_t pixel) const { return std::sqrt(squares_[pixel]); }

 private:
  static constexpr float kFar = 1e4f;
  static int first(float edge) { return static_cast<int>(std::clamp(edge - 0.5f, 0.0f, kSide - 1.0f)); }
  static int last(float edge) { return static_cast<int>(std::clamp(edge, 0.0f, kSide - 1.0f)); }

  std::array<float, kDigitSide * kDigitSide> squares_;
};

/// The Catmull–Rom curve between b and c, at t in [0, 1].
float between(float a, float b, float c, float d, float t) {
  return b + 0.5f * t * ((c - a) + t * ((2.0f * a - 5.0f * b + 4.0f * c - d) + t * (3.0f * (b - c) + d - a)));
}

void draw_stroke(const std::vector<Point>& points, float reach, Canvas& canvas) {
  Point pen = points.front();
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const Point &a = points[i == 0 ? 0 : i - 1], &b = points[i], &c = points[i + 1],
                &d = points[std::min(i + 2, points.size() - 1)];
    for (int step = 1; step <= kPointsPerSpan; ++step) {
      const float t = static_cast<float>(step) / kPointsPerSpan;
      const Point next = {between(a.x, b.x, c.x, d.x, t), between(a.y, b.y, c.y, d.y, t)};
      canvas.line(pen, next, reach);
      pen = next;
    }
  }
}

void draw_style(const DigitStyle& style, const Hand& hand, float wobble, float reach, Chance& chance, Canvas& canvas) {
  std::vector<Point> stroke;
  constexpr PenPoint kLift = {0, 0};
  for (size_t i = 0; i < style.size(); ++i) {
    if (style[i] == kLift) {
      if (!stroke.empty()) draw_stroke(stroke, reach, canvas);
      stroke.clear();
    } else if (!stroke.empty() && style[i] == style[i - 1]) {
      stroke.push_back(stroke.back());
    } else {
      const float x = static_cast<float>(style[i].x - 50) + chance.around_zero(wobble);
      const float y = static_cast<float>(style[i].y - 50) + chance.around_zero(wobble);
      stroke.push_back(hand.place(x, y));
    }
  }
  if (!stroke.empty()) draw_stroke(stroke, reach, canvas);
}

/// Converts distances to grey values: ink with a soft edge, plus noise. In two loops, because compilers vectorise each.
void develop(const Canvas& canvas, float radius, Chance& chance, const RandomStream& grain, std::span<uint8_t> pixels) {
  const float edge = chance.uniform(0.8f, 1.6f), ink = chance.uniform(200.0f, 255.0f);
  const float noise = chance.uniform(0.0f, 14.0f) / 128.0f;
  std::array<uint8_t, kDigitSide * kDigitSide> bytes;
  for (size_t i = 0; i < bytes.size(); i += 16) {
    const std::array<uint32_t, 4> words = grain.block(static_cast<uint32_t>(i / 16));
    for (size_t byte = 0; byte < 16; ++byte) bytes[i + byte] = static_cast<uint8_t>(words[byte / 4] >> (byte % 4 * 8));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    const float cover = std::clamp((radius - canvas.distance(i)) / edge + 0.5f, 0.0f, 1.0f);
    const float value = ink * cover + noise * static_cast<float>(bytes[i] - 128);
    pixels[i] = static_cast<uint8_t>(static_cast<int>(std::clamp(value, 0.0f, 255.0f)));
  }
}

}  // namespace

int64_t draw_digit(uint64_t seed, Split split, int64_t index, std::span<uint8_t> pixels) {
  const int64_t label = index % 10;
  RandomKey key{.seed = seed, .purpose = Purpose::digits, .owner = static_cast<uint32_t>(index)};
  key.tensor = split == Split::train ? 0 : 2;
  Chance chance{RandomStream(key)};
  ++key.tensor;
  const auto& styles = kDigitStyles[static_cast<size_t>(label)];
  const DigitStyle& style = styles[chance.below(static_cast<uint32_t>(styles.size()))];
  const Hand hand(chance);
  const float radius = chance.uniform(0.6f, 1.5f);
  const float wobble = chance.uniform(1.0f, 9.0f);
  Canvas canvas;
  draw_style(style, hand, wobble, radius + 1, chance, canvas);
  develop(canvas, radius, chance, RandomStream(key), pixels);
  return label;
}

MemoryDataset make_digits(uint64_t seed, Split split) {
  return draw_dataset({.channels = 1, .height = kDigitSide, .width = kDigitSide, .classes = 10},
                      split == Split::train ? kTrainSize : kTestSize,
                      [=](int64_t index, std::span<uint8_t> pixels) { return draw_digit(seed, split, index, pixels); });
}

}  // namespace tern
