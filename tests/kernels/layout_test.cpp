#include "tern/kernels/layout.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Layout, PutsDimensionsInAnotherOrder) {
  Tensor y = empty_f64({3, 1, 2});
  permute(f64({1, 2, 3}, {1, 2, 3, 4, 5, 6}), {2, 0, 1}, y);
  expect_values(y, {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(message_of<Error>([&] {
              permute(empty_f64({1, 2, 3}), {0, 1, 2}, y);
            }),
            "permute: output of shape [3, 1, 2] for [1, 2, 3], expected [1, 2, 3]");
}

TEST(Layout, TakesABlockOutAndPutsItIn) {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor block = empty_f64({2, 2}), whole = Tensor::zeros({3, 3}, {.dtype = DType::f64});
  extract(x, {0, 1}, block);
  expect_values(block, {2, 3, 5, 6});
  insert(block, {1, 0}, whole);
  expect_values(whole, {0, 0, 0, 2, 3, 0, 5, 6, 0});
  EXPECT_EQ(message_of<Error>([&] {
              insert(block, {2, 0}, whole);
            }),
            "insert: a block of shape [2, 2] at offset 2 of dimension 0 leaves the tensor of shape [3, 3]");
}

TEST(Layout, MirrorsAtTheEdges) {
  Tensor y = empty_f64({3, 7});
  reflection_pad(f64({2, 3}, {1, 2, 3, 4, 5, 6}), {.top = 1, .left = 2, .right = 2}, y);
  expect_values(y, {6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5, 6, 5, 4});
  Tensor dx = empty_f64({2, 3});
  reflection_pad_backward(Tensor::full({3, 7}, 1, {DType::f64}), {.top = 1, .left = 2, .right = 2}, dx);
  expect_values(dx, {2, 3, 2, 4, 6, 4});
}

TEST(Layout, ConvertsDTypeAndFormatAtOnce) {
  Tensor y = Tensor::empty({1, 2, 1, 2}, {.dtype = DType::bf16, .format = MemoryFormat::channels_last});
  convert(f64({1, 2, 1, 2}, {1, 2, 3, 4}), y);
  expect_values(y, {1, 2, 3, 4});
  EXPECT_EQ(static_cast<float>(y.span<BFloat16>()[1]), 3);
  fill(y, 7);
  expect_values(y, {7, 7, 7, 7});
}

}  // namespace
}  // namespace tern::kernels
