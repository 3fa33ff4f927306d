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

/// A value for each channel, or one for all.
double of_channel(const std::vector<float>& values, size_t channel) { return values[values.size() == 1 ? 0 : channel]; }

/// A table of the output for each of the 256 byte values, channel by channel. Computes in f64 and rounds once.
std::vector<float> lookup_table(const Transform& transform, const Augmentation& augmentation,
                                const std::vector<ChannelSums>& sums, double area) {
  std::vector<Affine> maps;
  for (const ChannelSums& sum : sums) maps.push_back(adjust(augmentation, static_cast<double>(sum.values) / area));
  if (transform.standardize) {
    standardize_all(sums, area, maps);
  } else {
    for (size_t c = 0; c < maps.size(); ++c) {
      const double mean = 255.0 * of_channel(transform.mean, c), deviation = 255.0 * of_channel(transform.deviation, c);
      maps[c] = {maps[c].scale / deviation, (maps[c].shift - mean) / deviation};
    }
  }
  std::vector<float> table;
  table.reserve(256 * maps.size());
  for (const Affine& map : maps)
    for (int value = 0; value < 256; ++value) table.push_back(static_cast<float>(map.scale * value + map.shift));
  return table;
}

/// Where the elements of a resized line lie in its source, in units of 1/2048 of a pixel.
constexpr int kFractionBits = 11;
constexpr int64_t kOne = 1 << kFractionBits;

int64_t resized_place(int64_t i, int64_t from, int64_t to) {
  return std::clamp<int64_t>((2 * i + 1) * from * kOne / (2 * to) - kOne / 2, 0, (from - 1) * kOne);
}

/// The area of `pixels` [H, W, C] that `augmentation` crops, resized to `size` by bilinear interpolation in whole
/// numbers: they are the same on a GPU.
std::vector<uint8_t> resized_area(const ImageSpec& input, const ImageSpec& size, const Augmentation& augmentation,
                                  std::span<const uint8_t> pixels) {
  std::vector<uint8_t> resized(static_cast<size_t>(size.numel()));
  const int64_t channels = size.channels;
  uint8_t* to = resized.data();
  for (int64_t y = 0; y < size.height; ++y) {
    const int64_t row = resized_place(y, augmentation.area_height, size.height), fy = row % kOne;
    const int64_t y0 = row / kOne, y1 = std::min<int64_t>(y0 + 1, augmentation.area_height - 1);
    const auto line = [&](int64_t at) {
      return pixels.data() + ((augmentation.top + at) * input.width + augmentation.left) * channels;
    };
    const uint8_t *above = line(y0), *below = line(y1);
    for (int64_t x = 0; x < size.width; ++x) {
      const int64_t column = resized_place(x, augmentation.area_width, size.width), fx = column % kOne;
      const int64_t x0 = column / kOne, x1 = std::min<int64_t>(x0 + 1, augmentation.area_width - 1);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t top = above[x0 * channels + c] * (kOne - fx) + above[x1 * channels + c] * fx,
                      bottom = below[x0 * channels + c] * (kOne - fx) + below[x1 * channels + c] * fx;
        *to++ = static_cast<uint8_t>((top * (kOne - fy) + bottom * fy + kOne * kOne / 2) / (kOne * kOne));
      }
    }
  }
  return resized;
}

/// The crop of `pixels` [H, W, C] whose outside is their mirror image.
std::vector<uint8_t> mirrored_crop(const ImageSpec& input, const ImageSpec& size, int64_t pad,
                                   const Augmentation& augmentation, std::span<const uint8_t> pixels) {
  std::vector<uint8_t> crop(static_cast<size_t>(size.numel()));
  uint8_t* to = crop.data();
  for (int64_t y = 0; y < size.height; ++y) {
    const int64_t row = mirrored(y + augmentation.top - pad, input.height);
    for (int64_t x = 0; x < size.width; ++x, to += input.channels) {
      const int64_t column = mirrored(x + augmentation.left - pad, input.width);
      std::copy_n(pixels.data() + (row * input.width + column) * input.channels, input.channels, to);
    }
  }
  return crop;
}

/// Changes the saturation of normalised pixels [h, w, 3].
void saturate(const Transform& transform, double saturation, std::span<float> image) {
  double mean[3], deviation[3];
  for (size_t c = 0; c < 3; ++c) {
    mean[c] = of_channel(transform.mean, c);
    deviation[c] = of_channel(transform.deviation, c);
  }
  for (size_t at = 0; at < image.size(); at += 3) {
    double value[3];
    for (size_t c = 0; c < 3; ++c) value[c] = image[at + c] * deviation[c] + mean[c];
    const double grey = 0.299 * value[0] + 0.587 * value[1] + 0.114 * value[2];  // ITU-R BT.601
    for (size_t c = 0; c < 3; ++c)
      image[at + c] = static_cast<float>((grey + saturation * (value[c] - grey) - mean[c]) / deviation[c]);
  }
}

/// Sets a square of the image [h, w, C] to 0.
void cut(const ImageSpec& size, int64_t side, const Augmentation& augmentation, std::span<float> image) {
  const auto clamped = [](int64_t at, int64_t extent) { return std::clamp<int64_t>(at, 0, extent); };
  const int64_t left = clamped(augmentation.cut_left, size.width),
                right = clamped(augmentation.cut_left + side, size.width);
  for (int64_t y = clamped(augmentation.cut_top, size.height); y < clamped(augmentation.cut_top + side, size.height);
       ++y)
    std::fill_n(image.begin() + (y * size.width + left) * size.channels, (right - left) * size.channels, 0.0f);
}

/// An area of a random size and shape inside an image: a crop that is resized. All of the image if none fits.
void draw_area(const ImageSpec& input, float least_area, const RandomStream& random, Augmentation& augmentation) {
  constexpr uint64_t kFirst = 8, kTries = 10;
  constexpr double kNarrowest = 3.0 / 4, kWidest = 4.0 / 3;
  const auto pixels = static_cast<double>(input.height * input.width);
  augmentation.top = augmentation.left = 0;
  augmentation.area_height = static_cast<int32_t>(input.height);
  augmentation.area_width = static_cast<int32_t>(input.width);
  for (uint64_t i = kFirst; i < kFirst + 4 * kTries; i += 4) {
    const double area = pixels * (least_area + (1 - least_area) * random.uniform(i)),
                 shape = kNarrowest + (kWidest - kNarrowest) * random.uniform(i + 1);
    const auto height = static_cast<int64_t>(std::lround(std::sqrt(area / shape))),
               width = static_cast<int64_t>(std::lround(std::sqrt(area * shape)));
    if (height < 1 || height > input.height || width < 1 || width > input.width) continue;
    augmentation.top = static_cast<int32_t>(random.below(i + 2, static_cast<uint32_t>(input.height - height + 1)));
    augmentation.left = static_cast<int32_t>(random.below(i + 3, static_cast<uint32_t>(input.width - width + 1)));
    augmentation.area_height = static_cast<int32_t>(height);
    augmentation.area_width = static_cast<int32_t>(width);
    return;
  }
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
  plain.random_crop = plain.random_area = plain.random_flip = plain.alternating_flip = false;
  plain.brightness = 0;
  plain.contrast_low = plain.contrast_high = plain.saturation_low = plain.saturation_high = 1;
  plain.cutout = 0;
  return plain;
}

ImageSpec Transform::output(const ImageSpec& input) const {
  ImageSpec output = input;
  check_input(crop_height >= 0 && crop_width >= 0, "transform: a crop of ", crop_height, "x", crop_width,
              ", expected 1 or more, or 0 for the size of the image");
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
  for (const float value : deviation)
    check_input(value > 0, "transform: a deviation of ", value, ", expected a number above 0");
  check_input(!random_area || (pad == 0 && !random_crop && least_area > 0 && least_area <= 1),
              "transform: a random area of at least ", least_area, " with pad ", pad, random_crop ? " and" : " without",
              " a random crop, expected a share in (0, 1], pad 0 and no random crop");
  const bool saturates = saturation_low != 1 || saturation_high != 1;
  check_input(!saturates || (input.channels == 3 && !standardize), "transform: saturation of ", input.channels,
              " channels", standardize ? " that are standardized" : "", ", expected 3 that are normalized");
  check_input(contrast_low <= contrast_high && saturation_low <= saturation_high, "transform: contrast from ",
              contrast_low, " to ", contrast_high, ", saturation from ", saturation_low, " to ", saturation_high,
              ", expected each from low to high");
  check_input(!reflect_pad || pad < std::min(input.height, input.width), "transform: a mirrored pad of ", pad,
              ", expected less than the image's ", input.height, "x", input.width);
  check_input(!random_flip || !alternating_flip, "transform: random and alternating flips, expected one of them");
  check_input(brightness >= 0, "transform: brightness ", brightness, ", expected 0 or more");
  check_input(cutout >= 0, "transform: cutout ", cutout, ", expected 0 or more");
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
  Augmentation augmentation = {
      .top = static_cast<int32_t>(random_crop ? random.below(0, spare_rows + 1) : spare_rows / 2),
      .left = static_cast<int32_t>(random_crop ? random.below(1, spare_columns + 1) : spare_columns / 2),
      .flip = random_flip && random.below(2, 2) == 1,
      .brightness = brightness * (2 * random.uniform(3) - 1),
      .contrast = contrast_low + (contrast_high - contrast_low) * random.uniform(4),
      .saturation = saturation_low + (saturation_high - saturation_low) * random.uniform(5),
  };
  if (cutout > 0) {
    const auto first = [&](uint64_t i, int64_t extent) {
      return static_cast<int32_t>(int64_t{random.below(i, static_cast<uint32_t>(extent))} - cutout / 2);
    };
    augmentation.cut_top = first(6, size.height);
    augmentation.cut_left = first(7, size.width);
  }
  if (alternating_flip) {
    const RandomStream of_image({.seed = seed, .purpose = Purpose::augment, .owner = static_cast<uint32_t>(index)});
    augmentation.flip = (of_image.below(2, 2) == 1) != (epoch % 2 == 1);
  }
  if (random_area) draw_area(input, least_area, random, augmentation);
  return augmentation;
}

void Transform::apply(const ImageSpec& input, const Augmentation& augmentation, std::span<const uint8_t> pixels,
                      std::span<float> image) const {
  const ImageSpec size = output(input);
  check(std::ssize(pixels) == input.numel() && std::ssize(image) == size.numel(), "transform: ", pixels.size(),
        " pixels to ", image.size(), " values, expected ", input.numel(), " to ", size.numel());
  const bool resizes = augmentation.area_height > 0;
  if (resizes || (reflect_pad && pad > 0)) {  // first the crop, then the rest
    Transform rest = *this;
    rest.random_area = rest.reflect_pad = false;
    rest.pad = 0;
    Augmentation other = augmentation;
    other.top = other.left = other.area_height = other.area_width = 0;
    return rest.apply(size, other,
                      resizes ? resized_area(input, size, augmentation, pixels)
                              : mirrored_crop(input, size, pad, augmentation, pixels),
                      image);
  }
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
  if (augmentation.saturation != 1) saturate(*this, augmentation.saturation, image);
  if (cutout > 0) cut(size, cutout, augmentation, image);
}

}  // namespace tern
