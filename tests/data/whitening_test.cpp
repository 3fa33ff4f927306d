#include "tern/data/whitening.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

/// Images whose neighbouring pixels and channels are correlated.
MemoryDataset correlated_images(int64_t count) {
  constexpr ImageSpec kSpec = {.channels = 2, .height = 6, .width = 5, .classes = 2};
  const RandomStream random({.seed = 3});
  std::vector<uint8_t> pixels;
  uint64_t draw = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = 128;
    for (int64_t at = 0; at < kSpec.numel(); ++at) {
      value = 128 + 0.7 * (value - 128) + 30 * random.normal(draw++);
      pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
    }
  }
  return {kSpec, std::move(pixels), std::vector<uint8_t>(static_cast<size_t>(count))};
}

// The filters' outputs over all patches have the mean products δij · λ/(λ + ε).
TEST(WhiteningFilters, MakePatchesUncorrelated) {
  const MemoryDataset images = correlated_images(40);
  const Transform transform{.random_flip = true, .mean = {0.5f}, .deviation = {0.25f}};
  const Tensor filters = whitening_filters(images, transform, {.images = 40, .epsilon = 1e-9});
  ASSERT_EQ(filters.shape(), (Shape{16, 2, 2, 2}));
  const ImageSpec spec = images.spec();
  const Transform plain = transform.for_evaluation();
  std::vector<double> products(16 * 16);
  double patches = 0;
  std::vector<uint8_t> pixels(static_cast<size_t>(spec.numel()));
  std::vector<float> image(pixels.size());
  const auto filter = filters.to_vector<double>();
  for (int64_t i = 0; i < images.size(); ++i) {
    images.read(i, pixels);
    plain.apply(spec, {}, pixels, image);
    for (int64_t top = 0; top < 5; ++top)
      for (int64_t left = 0; left < 4; ++left, ++patches) {
        double out[16] = {};
        for (size_t k = 0; k < 16; ++k)
          for (int64_t at = 0; at < 8; ++at) {
            const int64_t c = at / 4, y = at / 2 % 2, x = at % 2;
            out[k] += filter[k * 8 + static_cast<size_t>(at)] *
                      image[static_cast<size_t>(((top + y) * 5 + left + x) * 2 + c)];
          }
        for (size_t j = 0; j < 16; ++j)
          for (size_t k = 0; k < 16; ++k) products[j * 16 + k] += out[j] * out[k];
      }
  }
  for (size_t j = 0; j < 16; ++j)
    for (size_t k = 0; k < 16; ++k)
      EXPECT_NEAR(products[j * 16 + k] / patches, j == k ? 1 : j % 8 == k % 8 ? -1 : 0, 1e-5) << j << ", " << k;
}

TEST(WhiteningFilters, RefuseImagesThatAreSmallerThanAPatch) {
  EXPECT_THROW(whitening_filters(correlated_images(1), {}, {.extent = 6}), InputError);
}

}  // namespace
}  // namespace tern
