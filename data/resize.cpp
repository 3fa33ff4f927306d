#include "tern/data/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tern/core/error.h"

namespace tern {
namespace {

// Weights are integers, so sums are exact. They are in units of 2^-14, so that they fit in 16 bits.
constexpr int kUnitBits = 14, kUnit = 1 << kUnitBits;

/// For each output pixel along one axis: the first source pixel and the weights of that pixel and the next ones. The
/// weights of an output pixel sum to kUnit. All output pixels have the same number of weights, and some weights are 0:
/// a loop of fixed length costs less than a shorter loop with a branch that the processor cannot predict.
template <class Weight>
class Mix {
 public:
  struct Run {
    int first;
    std::span<const Weight> weights;
  };

  Mix(int from, int to) : first_(static_cast<size_t>(to)) {
    const double scale = static_cast<double>(from) / to;
    count_ = static_cast<size_t>(std::min(from, to < from ? static_cast<int>(std::ceil(scale)) + 1 : 2));
    weights_.resize(first_.size() * count_);
    for (int i = 0; i < to; ++i) to < from ? set_mean(i, scale, from) : set_linear(i, scale, from);
  }

  const std::vector<int>& first() const { return first_; }
  /// All weights; each output pixel has the same number of them.
  const std::vector<Weight>& weights() const { return weights_; }
  Run operator[](int i) const {
    const auto at = static_cast<size_t>(i);
    return {first_[at], std::span(weights_).subspan(at * count_, count_)};
  }

 private:
  /// Returns the place for the weight of pixel `source` in the weights of output pixel `i`. Sets first_[i], so that the
  /// run stays within the source.
  Weight* begin_run(int i, int source, int from) {
    const auto at = static_cast<size_t>(i);
    first_[at] = std::min(source, from - static_cast<int>(count_));
    return &weights_[at * count_] + (source - first_[at]);
  }

  /// Sets the weights for the mean over [i, i + 1) · scale. Rounds the cumulative sums, so the weights sum to kUnit
  /// exactly.
  void set_mean(int i, double scale, int from) {
    const double begin = i * scale;
    int source = static_cast<int>(begin), spent = 0;
    for (Weight* weight = begin_run(i, source, from); spent < kUnit; ++weight) {
      const double share = ++source == from ? 1 : std::min((source - begin) / scale, 1.0);
      const int sum = static_cast<int>(std::lround(share * kUnit));
      *weight = static_cast<Weight>(sum - spent);
      spent = sum;
    }
  }

  void set_linear(int i, double scale, int from) {
    const double center = std::clamp((i + 0.5) * scale - 0.5, 0.0, from - 1.0);
    const int source = static_cast<int>(center);
    const auto second = static_cast<Weight>(std::lround((center - source) * kUnit));
    Weight* weight = begin_run(i, source, from);
    weight[0] = static_cast<Weight>(kUnit - second);
    if (second > 0) weight[1] = second;
  }

  size_t count_ = 0;
  std::vector<int> first_;
  std::vector<Weight> weights_;
};

/// Mixes kRows rows, from `from` on, into one row. A small kRows is the usual case.
template <int kRows>
void mix_few(const uint8_t* from, size_t row_bytes, const int16_t* weights, std::span<float> row) {
  for (size_t i = 0; i < row.size(); ++i) {
    int32_t sum = kUnit / 2;
    for (size_t k = 0; k < kRows; ++k) sum += static_cast<int16_t>(from[k * row_bytes + i]) * weights[k];
    row[i] = static_cast<float>(sum >> kUnitBits);
  }
}

void mix_many(const uint8_t* from, size_t row_bytes, std::span<const int16_t> weights, std::span<float> row) {
  std::vector<int32_t> sums(row.size(), kUnit / 2);
  for (const int16_t weight : weights) {
    for (size_t i = 0; i < row.size(); ++i) sums[i] += static_cast<int16_t>(from[i]) * weight;
    from += row_bytes;
  }
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(sums[i] >> kUnitBits);
}

/// Mixes the rows of `run` into one row.
void mix_rows(const ImageView& image, Mix<int16_t>::Run run, std::span<float> row) {
  while (run.weights.back() == 0) run.weights = run.weights.first(run.weights.size() - 1);
  for (; run.weights.front() == 0; ++run.first) run.weights = run.weights.subspan(1);
  const uint8_t* from = image.values + static_cast<size_t>(run.first) * image.row_bytes;
  switch (run.weights.size()) {
    case 1: return mix_few<1>(from, image.row_bytes, run.weights.data(), row);
    case 2: return mix_few<2>(from, image.row_bytes, run.weights.data(), row);
    case 3: return mix_few<3>(from, image.row_bytes, run.weights.data(), row);
    default: return mix_many(from, image.row_bytes, run.weights, row);
  }
}

// Float sums below 2^24 are exact too.
constexpr size_t kLanes = 4;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Integers = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

/// Mixes columns into one row of pixels; returns the end of the output. Some of the four lanes belong to the next
/// pixel, or to none. So `row` must have room for kLanes more floats at its end.
template <int kChannels>
uint8_t* mix_columns(const float* row, int pixel_bytes, const Mix<float>& columns, uint8_t* to) {
  const size_t count = columns[0].weights.size();
  const float* weight = columns.weights().data();
  for (const int first : columns.first()) {
    const float* from = row + static_cast<ptrdiff_t>(first) * pixel_bytes;
    Floats sums = {};
    for (size_t k = 0; k < count; ++k) {
      Floats values;
      std::memcpy(&values, from, sizeof values);
      sums += values * *weight++;
      from += pixel_bytes;
    }
    const Integers mixed = (__builtin_convertvector(sums, Integers) + kUnit / 2) >> kUnitBits;
    for (int i = 0; i < kChannels; ++i) *to++ = static_cast<uint8_t>(mixed[i]);
  }
  return to;
}

size_t bytes_of(int width, int height, int channels) {
  return static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels);
}

}  // namespace

void resize(const ImageView& image, int width, int height, std::span<uint8_t> to) {
  check(image.width > 0 && image.height > 0 && width > 0 && height > 0, "resize: ", image.width, "x", image.height,
        " to ", width, "x", height);
  check(to.size() == bytes_of(width, height, image.channels), "resize: room for ", to.size(), " bytes, ", width, "x",
        height, " pixels of ", image.channels, " channels have ", bytes_of(width, height, image.channels));
  const Mix<float> columns(image.width, width);
  const Mix<int16_t> rows(image.height, height);
  // In a part of a picture, the last pixel may end at the end of the picture's memory. So do not read beyond its
  // channels.
  const size_t used = bytes_of(image.width - 1, 1, image.pixel_bytes) + static_cast<size_t>(image.channels);
  std::vector<float> row(bytes_of(image.width, 1, image.pixel_bytes) + kLanes);
  const auto mix_row = image.channels == 1 ? mix_columns<1> : mix_columns<3>;
  uint8_t* place = to.data();
  for (int y = 0; y < height; ++y) {
    mix_rows(image, rows[y], std::span(row).first(used));
    place = mix_row(row.data(), image.pixel_bytes, columns, place);
  }
}

Image resize(const ImageView& image, int width, int height) {
  Image resized{.width = width,
                .height = height,
                .channels = image.channels,
                .values = std::vector<uint8_t>(bytes_of(width, height, image.channels))};
  resize(image, width, height, resized.values);
  return resized;
}

}  // namespace tern
