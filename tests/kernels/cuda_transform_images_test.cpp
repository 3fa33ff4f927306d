#include <gtest/gtest.h>

#include <tuple>

#include "tern/core/random.h"
#include "tern/data/transforms.h"
#include "tern/kernels/transform_images.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

struct TransformCase {
  const char* name;
  ImageSpec input;
  Transform transform;
};
const TransformCase kTransformCases[] = {
    {"as it is", {1, 28, 28, 10}, {}},
    {"a crop from the centre", {3, 11, 9, 10}, {.crop_height = 6, .crop_width = 5, .mean = {0.1f, 0.5f, 0.9f}}},
    {"padded, cropped and flipped at random",
     {3, 8, 8, 10},
     {.pad = 2, .random_crop = true, .random_flip = true, .mean = {0.49f}, .deviation = {0.2f, 0.25f, 0.3f}}},
    {"a mirrored pad, flipped every other time",
     {3, 8, 7, 10},
     {.pad = 3, .reflect_pad = true, .crop_width = 11, .random_crop = true, .alternating_flip = true}},
    {"brightness and contrast",
     {3, 10, 12, 10},
     {.crop_height = 7,
      .crop_width = 9,
      .random_crop = true,
      .brightness = 0.2f,
      .contrast_low = 0.2f,
      .contrast_high = 1.8f}},
    {"standardized",
     {3, 12, 12, 10},
     {.pad = 1,
      .crop_height = 9,
      .crop_width = 13,
      .random_crop = true,
      .random_flip = true,
      .brightness = 0.25f,
      .contrast_low = 0.5f,
      .contrast_high = 1.5f,
      .standardize = true}},
    {"a random area",
     {3, 13, 17, 10},
     {.crop_height = 9, .crop_width = 11, .random_area = true, .random_flip = true, .contrast_high = 1.5f}},
    {"saturation and cutout",
     {3, 9, 8, 10},
     {.random_flip = true,
      .brightness = 0.1f,
      .saturation_low = 0.3f,
      .saturation_high = 1.7f,
      .mean = {0.1f, 0.5f, 0.9f},
      .deviation = {0.2f, 0.25f, 0.3f},
      .cutout = 4}},
    {"standardized, four channels", {4, 3, 5, 10}, {.standardize = true}},
};

TEST(CudaTransformImages, GivesTheBitsOfTheCpus) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  constexpr int64_t kExamples = 7;
  const std::vector<int64_t> rows{6, 0, 3, 3, 5};
  const auto n = static_cast<int64_t>(rows.size());
  for (const auto& [name, input, transform] : kTransformCases) {
    SCOPED_TRACE(name);
    const ImageSpec output = transform.output(input);
    const auto example = static_cast<size_t>(input.numel()), image = static_cast<size_t>(output.numel());
    const Tensor pixels = Tensor::empty({kExamples, input.channels, input.height, input.width},
                                        {.dtype = DType::u8, .format = MemoryFormat::channels_last});
    const auto bytes = pixels.span<uint8_t>();
    const RandomStream stream({.seed = 4});
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(stream.word(i));
    std::fill_n(bytes.begin() + 3 * example, example, uint8_t{200});  // an image with deviation 0
    const Tensor expected =
        Tensor::empty({n, output.channels, output.height, output.width}, {.format = MemoryFormat::channels_last});
    std::vector<double> draws;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Augmentation a = transform.draw(input, 9, static_cast<int64_t>(i), rows[i]);
      for (const double draw :
           {double(a.top), double(a.left), double(a.flip), double(a.brightness), double(a.contrast),
            double(a.saturation), double(a.area_height), double(a.area_width), double(a.cut_top), double(a.cut_left)})
        draws.push_back(draw);
      transform.apply(input, a, bytes.subspan(static_cast<size_t>(rows[i]) * example, example),
                      expected.span<float>().subspan(i * image, image));
    }
    for (const auto& [dtype, channels, format] : {std::tuple{DType::f32, output.channels, MemoryFormat::channels_last},
                                                  {DType::f32, output.channels, MemoryFormat::row_major},
                                                  {DType::bf16, output.channels, MemoryFormat::channels_last},
                                                  {DType::bf16, int64_t{8}, MemoryFormat::channels_last},
                                                  {DType::bf16, int64_t{8}, MemoryFormat::row_major}}) {
      const Tensor whole =
          Tensor::zeros({n, channels, output.height, output.width}, {.format = MemoryFormat::channels_last});
      const auto own = static_cast<size_t>(output.channels), all = static_cast<size_t>(channels);
      for (size_t i = 0; i < expected.span<float>().size(); ++i)
        whole.span<float>()[i / own * all + i % own] = expected.span<float>()[i];
      Tensor images = Tensor::empty(whole.shape(), {dtype, device, format});
      kernels::transform_images(pixels.to(device), Tensor::from<int64_t>({n}, rows).to(device),
                                Tensor::from<double>({n, kernels::kImageDraws}, draws).to(device),
                                {.pad = transform.pad,
                                 .reflect_pad = transform.reflect_pad,
                                 .standardize = transform.standardize,
                                 .mean = transform.mean,
                                 .deviation = transform.deviation,
                                 .cutout = transform.cutout},
                                images);
      EXPECT_EQ(images.to_vector<float>(), whole.to(dtype).to_vector<float>())
          << to_string(dtype) << " " << channels << " " << to_string(format);
    }
  }
}

}  // namespace
}  // namespace tern
