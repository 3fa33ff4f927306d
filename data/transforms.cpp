#include "tern/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

/// The part of the output that the example covers: rows [top, bottom) and columns [left, right). The rest is padding.
struct Covered {
  int64_t top, bottom, left, right;
};

Covered covered(const ImageSpec& input, const ImageSpec& output, int64_t pad, const Augmentation& augmentation) {
  const int64_t row = augmentation.top - pad, column = augmentation.left - pad;
  return {.top = std::clamp<int64_t>(-row, 0, output.height),
          .bottom = std::clamp<int64_t>(input.height - row, 0, output.height),
          .left = std::clamp<int64_t>(-column, 0, output.width),
          .right = std::clamp<int64_t>(input.width - column, 0, output.width)};
}

/// Exact sums over one channel of the crop; padding adds 0.
struct ChannelSums {
  int64_t values = 0, squares = 0;
};

/// The map x → scale·x + shift.
struct Affine {
  double scale, shift;
};

/// Brightness and contrast of a channel: contrast·(x + brightness − mean) + mean, with the mean after brightness.
Affine adjust(const Augmentation& augmentation, double mean) {
  const double contrast = augmentation.contrast;
  return {contrast, 255.0 * augmentation.brightness + (1 - contrast) * mean};
}

/// Standardizes `maps` by the mean and deviation over all adjusted channels of an image with `area` pixels.
void standardize_all(const std::vector<ChannelSums>& sums, double area, std::vector<Affine>& maps) {
  const double n = area * static_cast<double>(maps.size());
  double mean = 0, squares = 0;
  for (size_t c = 0; c < maps.size(); ++c)
    mean += (maps[c].scale * static_cast<double>(sums[c].values) + maps[c].shift * area) / n;
  for (size_t c = 0; c < maps.size(); ++c) {
    const double own = static_cast<double>(sums[c].values) / area;
    const double variance = static_cast<double>(sums[c].squares) / area - own * own;
    const double distance = maps[c].scale * own + maps[c].shift - mean;
    squares += area * (maps[c].scale * maps[c].scale * variance + distance * distance);
  }
  const double deviation = std::max(std::sqrt(std::max(squares, 0.0) / n), 1 / std::sqrt(n));
  for (Affine& map : maps) map = {map.scale / deviation, (map.shift - mean) / deviation};
}

/// A table of the output for each of the 256 byte values, channel by channel. Computes in f64 and rounds once.
std::vector<float> lookup_table(const Transform& transform, const Augmentation& augmentation,
                                const std::vector<ChannelSums>& sums, double area) {
  std::vector<Affine> maps;
  for (const ChannelSums& sum : sums) maps.push_back(adjust(augmentation, static_cast<double>(sum.values) / area));
  if (transform.standardize) {
    standardize_all(sums, area, maps);
  } else {
    for (size_t c = 0; c < maps.size(); ++c) {
      const double mean = 255.0 * transform.mean[transform.mean.size() == 1 ? 0 : c];
      const double deviation = 255.0 * transform.deviation[transform.deviation.size() == 1 ? 0 : c];
      maps[c] = {maps[c].scale / deviation, (maps[c].shift - mean) / deviation};
    }
  }
  std::vector<float> table;
  table.reserve(256 * maps.size());
  for (const Affine& map : maps)
    for (int value = 0; value < 256; ++value) table.push_back(static_cast<float>(map.scale * value + map.shift));
  return table;
}

/// Calls `body` with the number of channels: a compile-time constant for 1 and 3.
template <class Body>
void with_channels(int64_t channels, Body&& body) {
  if (channels == 1) return body(std::integral_constant<int64_t, 1>{});
  if (channels == 3) return body(std::integral_constant<int64_t, 3>{});
  body(channels);
}

}  // namespace

Transform Transform::for_evaluation() const {
  Transform plain = *this;
  plain.random_crop = plain.random_flip = false;
  plain.brightness = 0;
  plain.contrast_low = plain.contrast_high = 1;
  return plain;
}

ImageSpec Transform::output(const ImageSpec& input) const {
  ImageSpec output = input;
  if (crop_height > 0) output.height = crop_height;
  if (crop_width > 0) output.width = crop_width;
  check_input(pad >= 0 && output.height <= input.height + 2 * pad && output.width <= input.width + 2 * pad,
              "transform: a crop of ", output.height, "x", output.width, " does not fit into an image of ",
              input.height, "x", input.width, " padded by ", pad);
  const auto fits = [&](const std::vector<float>& values) {
    return values.size() == 1 || std::ssize(values) == input.channels;
  };
  check_input(fits(mean) && fits(deviation), "transform: ", mean.size(), " means and ", deviation.size(),
              " deviations, expected one or one for each of ", input.channels, " channels");
  check_input(std::ranges::all_of(deviation, [](float value) { return value > 0; }),
              "transform: a deviation is not positive");
  return output;
}

Augmentation Transform::draw(const ImageSpec& input, uint64_t seed, int64_t epoch, int64_t index) const {
  const ImageSpec size = output(input);
  const auto spare_rows = static_cast<uint32_t>(input.height + 2 * pad - size.height);
  const auto spare_columns = static_cast<uint32_t>(input.width + 2 * pad - size.width);
  const RandomStream random({.seed = seed,
                             .purpose = Purpose::augment,
                             .owner = static_cast<uint32_t>(index),
                             .step = static_cast<uint32_t>(epoch)});
  return {
      .top = static_cast<int32_t>(random_crop ? random.below(0, spare_rows + 1) : spare_rows / 2),
      .left = static_cast<int32_t>(random_crop ? random.below(1, spare_columns + 1) : spare_columns / 2),
      .flip = random_flip && random.below(2, 2) == 1,
      .brightness = brightness * (2 * random.uniform(3) - 1),
      .contrast = contrast_low + (contrast_high - contrast_low) * random.uniform(4),
  };
}

void Transform::apply(const ImageSpec& input, const Augmentation& augmentation, std::span<const uint8_t> pixels,
                      std::span<float> image) const {
  const ImageSpec size = output(input);
  check(std::ssize(pixels) == input.numel() && std::ssize(image) == size.numel(), "transform: ", pixels.size(),
        " pixels to ", image.size(), " values, expected ", input.numel(), " to ", size.numel());
  const Covered inside = covered(input, size, pad, augmentation);
  const auto source = [&](int64_t y) {
    const int64_t row = y + augmentation.top - pad, column = inside.left + augmentation.left - pad;
    return pixels.data() + (row * input.width + column) * input.channels;
  };

  with_channels(input.channels, [&](auto channels) {
    std::vector<ChannelSums> sums(static_cast<size_t>(channels));
    if (standardize || augmentation.contrast != 1) {
      for (int64_t y = inside.top; y < inside.bottom; ++y) {
        const uint8_t* from = source(y);
        for (int64_t x = inside.left; x < inside.right; ++x)
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t value = *from++;
            sums[static_cast<size_t>(c)].values += value;
            sums[static_cast<size_t>(c)].squares += value * value;
          }
      }
    }
    const auto table = lookup_table(*this, augmentation, sums, static_cast<double>(size.height * size.width));
    const auto pad_row = [&](float* to, int64_t count) {
      for (int64_t x = 0; x < count; ++x)
        for (int64_t c = 0; c < channels; ++c) *to++ = table[static_cast<size_t>(256 * c)];
    };
    for (int64_t y = 0; y < size.height; ++y) {
      float* row = image.data() + y * size.width * channels;
      if (y < inside.top || y >= inside.bottom) {
        pad_row(row, size.width);
        continue;
      }
      pad_row(row, inside.left);
      const uint8_t* from = source(y);
      float* to = row + inside.left * channels;
      for (int64_t x = inside.left; x < inside.right; ++x)
        for (int64_t c = 0; c < channels; ++c) *to++ = table[static_cast<size_t>(256 * c + *from++)];
      pad_row(to, size.width - inside.right);
      if (augmentation.flip)
        for (float *left = row, *right = row + size.width * channels; left < (right -= channels); left += channels)
          std::swap_ranges(left, left + channels, right);
    }
  });
}

}  // namespace tern
