#include "tern/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

/// The part of an image that the crop takes: output rows [top, bottom) and columns [left, right) come from the
/// example, first from its row `row` and column `column`; the rest is padding.
struct Window {
  int64_t top, bottom, left, right, row, column;
};

Window window(const ImageSpec& input, const ImageSpec& output, int64_t pad, const Augmentation& augmentation) {
  const int64_t row = augmentation.top - pad, column = augmentation.left - pad;
  const int64_t top = std::max<int64_t>(0, -row), left = std::max<int64_t>(0, -column);
  return {.top = top,
          .bottom = std::clamp(input.height - row, top, output.height),
          .left = left,
          .right = std::clamp(input.width - column, left, output.width),
          .row = row + top,
          .column = column + left};
}

/// image = scale·x + shift, per channel.
struct Affine {
  std::vector<double> scale, shift;
};

/// Brightness, contrast and normalization of one image, from the exact integer sums of its cropped pixels. All are
/// affine per channel, so the pixels are passed over once more and no more.
Affine affine(const Transform& transform, const Augmentation& augmentation, const std::vector<int64_t>& sum,
              const std::vector<int64_t>& sum_of_squares, int64_t area) {
  const size_t channels = sum.size();
  const double contrast = augmentation.contrast;
  Affine result{std::vector<double>(channels, contrast), std::vector<double>(channels)};
  for (size_t c = 0; c < channels; ++c)
    result.shift[c] = 255.0 * augmentation.brightness + (1 - contrast) * static_cast<double>(sum[c]) / area;

  std::vector<double> mean(channels), deviation(channels);
  if (transform.standardize) {
    const double n = static_cast<double>(area) * static_cast<double>(channels);
    double total = 0, spread = 0;
    for (size_t c = 0; c < channels; ++c)
      total += contrast * static_cast<double>(sum[c]) + result.shift[c] * static_cast<double>(area);
    for (size_t c = 0; c < channels; ++c) {
      const double channel_mean = static_cast<double>(sum[c]) / area;
      const double variance = static_cast<double>(sum_of_squares[c]) / area - channel_mean * channel_mean;
      const double distance = contrast * channel_mean + result.shift[c] - total / n;
      spread += static_cast<double>(area) * (contrast * contrast * variance + distance * distance);
    }
    std::ranges::fill(mean, total / n);
    std::ranges::fill(deviation, std::max(std::sqrt(std::max(spread, 0.0) / n), 1 / std::sqrt(n)));
  } else {
    for (size_t c = 0; c < channels; ++c) {
      mean[c] = 255.0 * transform.mean[transform.mean.size() == 1 ? 0 : c];
      deviation[c] = 255.0 * transform.deviation[transform.deviation.size() == 1 ? 0 : c];
    }
  }
  for (size_t c = 0; c < channels; ++c) {
    result.scale[c] /= deviation[c];
    result.shift[c] = (result.shift[c] - mean[c]) / deviation[c];
  }
  return result;
}

/// Calls `body` with the number of channels, as a constant where it is a usual one.
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
  const Window inside = window(input, size, pad, augmentation);
  check(std::ssize(pixels) == input.numel() && std::ssize(image) == size.numel(), "transform: ", pixels.size(),
        " pixels to ", image.size(), " values, expected ", input.numel(), " to ", size.numel());
  const auto source = [&](int64_t y) {
    return pixels.data() + ((inside.row + y - inside.top) * input.width + inside.column) * input.channels;
  };
  with_channels(input.channels, [&](auto channels) {
    std::vector<int64_t> sum(static_cast<size_t>(channels)), sum_of_squares(static_cast<size_t>(channels));
    if (standardize || augmentation.contrast != 1) {
      for (int64_t y = inside.top; y < inside.bottom; ++y) {
        const uint8_t* row = source(y);
        for (int64_t x = 0; x < inside.right - inside.left; ++x)
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t value = row[x * channels + c];
            sum[static_cast<size_t>(c)] += value;
            sum_of_squares[static_cast<size_t>(c)] += value * value;
          }
      }
    }
    const Affine map = affine(*this, augmentation, sum, sum_of_squares, size.height * size.width);
    const std::vector<float> scale(map.scale.begin(), map.scale.end()), shift(map.shift.begin(), map.shift.end());
    const auto fill_padding = [&](float* row, int64_t first, int64_t last) {
      for (int64_t x = first; x < last; ++x) std::ranges::copy(shift, row + x * channels);
    };
    for (int64_t y = 0; y < size.height; ++y) {
      float* row = image.data() + y * size.width * channels;
      const bool padding = y < inside.top || y >= inside.bottom;
      const int64_t left = padding ? size.width : inside.left, right = padding ? size.width : inside.right;
      fill_padding(row, 0, left);
      const uint8_t* from = padding ? nullptr : source(y);
      float* to = row + left * channels;
      for (int64_t x = 0; x < right - left; ++x)
        for (int64_t c = 0; c < channels; ++c)
          to[x * channels + c] = scale[static_cast<size_t>(c)] * from[x * channels + c] + shift[static_cast<size_t>(c)];
      fill_padding(row, right, size.width);
      if (augmentation.flip)
        for (int64_t x = 0; x < size.width / 2; ++x)
          std::swap_ranges(row + x * channels, row + (x + 1) * channels, row + (size.width - 1 - x) * channels);
    }
  });
}

}  // namespace tern
