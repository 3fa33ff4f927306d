#include "tern/core/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(shape, values);
}

using Floats = std::vector<float>;

TEST(Tensor, CopyingSharesAndCloneCopies) {
  const Tensor a = counting({2, 2});
  EXPECT_FALSE(a.is_shared());
  const Tensor b = a, c = a.clone();
  EXPECT_TRUE(a.is_shared());
  EXPECT_FALSE(c.is_shared());
  b.data<float>()[0] = 7;
  EXPECT_EQ(a.to_vector<float>(), (Floats{7, 1, 2, 3}));
  EXPECT_EQ(c.to_vector<float>(), (Floats{0, 1, 2, 3}));
}

TEST(Tensor, ViewsShareElements) {
  const Tensor a = counting({4, 3});
  const Tensor rows = a.slice(1, 3), flat = a.reshape({-1}), square = rows.reshape({3, -1});
  EXPECT_EQ(rows.to_vector<float>(), (Floats{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(square.shape(), (Shape{3, 2}));
  square.fill(0);
  EXPECT_EQ(flat.to_vector<float>(), (Floats{0, 1, 2, 0, 0, 0, 0, 0, 0, 9, 10, 11}));
  EXPECT_EQ(a.slice(2, 2).numel(), 0);
}

TEST(Tensor, ViewsBytesAsTensors) {
  const Tensor bytes = Tensor::zeros({40}, {.dtype = DType::u8}).slice(8, 40);
  const Tensor floats = bytes.view(16, {2, 1}, DType::f32), all = bytes.view(0, {4}, DType::i64);
  floats.copy_from(Tensor::from<float>({2, 1}, Floats{1, 2}));
  EXPECT_EQ(floats.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(all.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0x40000000'3f800000, 0}));
  for (const auto& [offset, count] : {std::pair{24, 3}, {32, 1}, {2, 1}})
    EXPECT_THROW(bytes.view(static_cast<size_t>(offset), {count}, DType::f32), Error) << offset;
  EXPECT_THROW(floats.view(0, {1}, DType::f32), Error);
  EXPECT_THROW(bytes.view(SIZE_MAX - 7, {2}, DType::f32), Error) << "offset + 8 is 0";
  EXPECT_THROW(bytes.slice(1, 16).view(0, {2}, DType::f32), Error) << "not aligned";
  bytes.fill(3);
  EXPECT_EQ(bytes.slice(1, 16).view(3, {1}, DType::f32).raw_data(), bytes.slice(4, 8).raw_data());
}

TEST(Tensor, KeepsLogicalOrderInEveryFormat) {
  const Tensor rows = counting({2, 3, 2, 2});
  const Tensor last = rows.to(MemoryFormat::channels_last);
  EXPECT_EQ(last.shape(), rows.shape());
  EXPECT_EQ(last.span<float>()[1], 4) << "the next channel of the first pixel stands second";
  EXPECT_EQ(last.to_vector<float>(), rows.to_vector<float>());
  EXPECT_EQ(last.to(MemoryFormat::row_major).to_vector<float>(), rows.to_vector<float>());
  const auto [n, c, h, w] = strides4(last);
  EXPECT_EQ((Shape{n, c, h, w}), (Shape{12, 1, 6, 3}));
  EXPECT_EQ(last.slice(1, 2).to_vector<float>(), rows.slice(1, 2).to_vector<float>());
  EXPECT_EQ(message_of<Error>([&] {
              last.reshape({6, 4});
            }),
            "reshape: [2, 3, 2, 2] is channels_last; convert to row_major first");
}

TEST(Tensor, SharesItsElementsIfBothFormatsHaveOneOrder) {
  for (const Shape& shape : {Shape{2, 1, 3, 4}, {2, 3, 1, 1}}) {
    const Tensor rows = Tensor::full(shape, 1), last = rows.to(MemoryFormat::channels_last);
    EXPECT_EQ(last.format(), MemoryFormat::channels_last);
    EXPECT_EQ(last.raw_data(), rows.raw_data());
  }
}

TEST(Tensor, ConvertsDTypes) {
  const Tensor a = Tensor::from<float>({3}, Floats{1.0f, -2.5f, 1.00390625f});
  EXPECT_EQ(a.to(DType::f64).to_vector<double>(), (std::vector<double>{1.0, -2.5, 1.00390625}));
  EXPECT_EQ(a.to(DType::bf16).to_vector<float>(), (Floats{1.0f, -2.5f, 1.0f}));
  const Tensor image = counting({1, 2, 2, 2});
  Tensor target = Tensor::empty(image.shape(), {.dtype = DType::f64, .format = MemoryFormat::channels_last});
  target.copy_from(image);
  EXPECT_EQ(target.to_vector<float>(), image.to_vector<float>());
  EXPECT_TRUE(a.to(DType::f32).is_shared()) << "nothing to convert, nothing to copy";
}

TEST(Tensor, ReadsItsSingleElement) {
  EXPECT_EQ(Tensor::full({}, 2.5).item(), 2.5);
  EXPECT_EQ(Tensor::full({1, 1}, 3, {.dtype = DType::bf16}).item(), 3);
}

TEST(Tensor, HasNoElementsWhereAnExtentIsZero) {
  const Tensor none = Tensor::zeros({0, 3});
  EXPECT_TRUE(none.defined());
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_EQ(none.clone().to(DType::f64).to_vector<double>(), std::vector<double>{});
}

TEST(Tensor, NamesWhatIsWrong) {
  const Tensor a = counting({2, 3});
  EXPECT_EQ(message_of<Error>([&] { a.data<double>(); }), "tensor: elements are f32, read as f64");
  EXPECT_EQ(message_of<Error>([&] { a.item(); }), "item: tensor of shape [2, 3] has 6 elements, expected 1");
  EXPECT_EQ(message_of<Error>([&] { a.reshape({4, 2}); }), "reshape: [2, 3] has 6 elements, [4, 2] has 8");
  EXPECT_EQ(message_of<Error>([&] { a.reshape({4, -1}); }), "reshape: [2, 3] has 6 elements, which do not divide by 4");
  EXPECT_EQ(message_of<Error>([&] { a.slice(1, 3); }),
            "slice: rows 1 to 3 of shape [2, 3], expected a range within its first dimension");
  EXPECT_EQ(message_of<Error>([&] { a.copy_from(counting({3, 2})); }), "copy: source has shape [3, 2], target [2, 3]");
  EXPECT_EQ(message_of<Error>([&] { Tensor::from<float>({3}, Floats{1}); }), "tensor: 1 values for shape [3]");
  EXPECT_EQ(message_of<Error>([] { Tensor().raw_data(); }), "tensor: undefined, expected one with elements");
  EXPECT_EQ(message_of<Error>([&] { a.to(MemoryFormat::channels_last); }),
            "tensor: channels_last needs 4 dimensions, [2, 3] has 2");
}

}  // namespace
}  // namespace tern
