#include "tern/data/dataset.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <span>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

constexpr ImageSpec kSpec = {.channels = 3, .height = 1, .width = 1, .classes = 2};

TEST(DrawDataset, RefusesALabelThatIsNoClassOrHasMoreThan8Bits) {
  const auto drawn = [](int64_t classes, int64_t label) {
    const ImageSpec spec = {.channels = 1, .height = 1, .width = 1, .classes = classes};
    return message_of<Error>([&] { draw_dataset(spec, 2, [&](int64_t, std::span<uint8_t>) { return label; }); });
  };
  EXPECT_EQ(drawn(1000, 255), "");
  EXPECT_TRUE(drawn(1000, 300).ends_with(" has the label 300, expected 0 to 255")) << drawn(1000, 300);
  EXPECT_TRUE(drawn(3, -1).ends_with(" has the label -1, expected 0 to 2")) << drawn(3, -1);
}

TEST(MemoryDataset, ReadsWhatItWasGiven) {
  const MemoryDataset data(kSpec, {1, 2, 3, 4, 5, 6}, {0, 1});
  std::vector<uint8_t> pixels(3);
  EXPECT_EQ(data.read(1, pixels), 1);
  EXPECT_EQ(pixels, (std::vector<uint8_t>{4, 5, 6}));
  EXPECT_THROW(data.read(2, pixels), Error);
  EXPECT_THROW(data.read(-1, pixels), Error);
  pixels.pop_back();
  EXPECT_THROW(data.read(0, pixels), Error);
}

TEST(MemoryDataset, RefusesSizesAndLabelsThatDisagree) {
  EXPECT_THROW(MemoryDataset(kSpec, {1, 2, 3, 4}, {0, 1}), Error);
  EXPECT_THROW(MemoryDataset(kSpec, {1, 2, 3}, {2}), Error);
}

TEST(ImageDataset, GivesPixelsAndLabelAsASample) {
  const MemoryDataset data({.channels = 3, .height = 1, .width = 2, .classes = 2}, {1, 2, 3, 4, 5, 6}, {1});
  EXPECT_EQ(data.fields(), (std::vector<Field>{{.name = "image", .dtype = DType::u8, .shape = {1, 2, 3}},
                                               {.name = "label", .dtype = DType::i64}}));
  const Sample sample = data.sample(0);
  EXPECT_EQ(sample.at("image").shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(sample.at("image").to_vector<uint8_t>(), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(sample.at("label").shape(), Shape{});
  EXPECT_EQ(sample.at("label").item(), 1);
  EXPECT_EQ(sample.size(), 2u);
}

TEST(ImageDataset, KeepsTheFingerprintThatCheckpointsHold) {
  const MemoryDataset data(kSpec, {1, 2, 3, 4, 5, 6}, {0, 1});
  const std::vector<uint8_t> bytes = {1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(data.fingerprint(), crc32c(std::as_bytes(std::span(bytes))));
}

Tensor numbered(const Shape& shape, DType dtype = DType::f32) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(shape, values).to(dtype);
}

TEST(TensorDataset, GivesTheRowsOfItsTensors) {
  const TensorDataset data({{"x", numbered({3, 2})}, {"y", numbered({3}, DType::i64)}});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.fields(),
            (std::vector<Field>{{.name = "x", .shape = {2}}, {.name = "y", .dtype = DType::i64, .shape = {}}}));
  const Sample sample = data.sample(2);
  EXPECT_EQ(sample.at("x").shape(), (Shape{2}));
  EXPECT_EQ(sample.at("x").to_vector<float>(), (std::vector<float>{4, 5}));
  EXPECT_EQ(sample.at("y").item(), 2);
  EXPECT_THROW(data.sample(3), Error);
  EXPECT_THROW(data.sample(-1), Error);
}

TEST(TensorDataset, TakesEveryMemoryFormat) {
  const Tensor pictures = numbered({2, 3, 1, 2});
  const TensorDataset data({{"x", pictures.to(MemoryFormat::channels_last)}});
  EXPECT_EQ(data.sample(1).at("x").shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(data.sample(1).at("x").to_vector<float>(), (std::vector<float>{6, 7, 8, 9, 10, 11}));
}

TEST(TensorDataset, RefusesTensorsWithoutCommonRows) {
  const auto message = [](const NamedTensors& tensors) {
    return message_of<InputError>([&] { TensorDataset{tensors}; });
  };
  EXPECT_EQ(message({}), "tensor data set: no tensors, expected one or more");
  EXPECT_EQ(message({{"x", numbered({3, 2})}, {"y", numbered({2})}}),
            "tensor data set: 'y' has 2 rows, expected 3 as in 'x'");
  EXPECT_EQ(message({{"x", numbered({})}}), "tensor data set: 'x' has no rows, expected [N, ...]");
  EXPECT_EQ(message({{"x", Tensor()}}), "tensor data set: 'x' has no rows, expected [N, ...]");
}

TEST(Dataset, FingerprintDistinguishesNamesShapesTypesAndElements) {
  const auto of = [](const NamedTensors& tensors) { return TensorDataset(tensors).fingerprint(); };
  const std::set<uint32_t> different = {
      of({{"x", numbered({3, 2})}}),
      of({{"y", numbered({3, 2})}}),
      of({{"x", numbered({2, 3})}}),
      of({{"x", numbered({3, 2, 1})}}),
      of({{"x", numbered({3, 2}, DType::f64)}}),
      of({{"x", Tensor::zeros({3, 2})}}),
      of({{"x", Tensor::zeros({3, 2}, {.dtype = DType::u8})}}),
      of({{"x", numbered({3, 2})}, {"y", numbered({3, 2})}}),
  };
  EXPECT_EQ(different.size(), 8u);
  EXPECT_EQ(of({{"x", numbered({3, 2})}}), of({{"x", numbered({3, 2})}}));
}

}  // namespace
}  // namespace tern
