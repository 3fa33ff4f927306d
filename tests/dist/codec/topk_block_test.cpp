#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tern/kernels/blocks.h"
#include "tests/dist/codec/codec_support.h"

namespace tern::test {
namespace {

using kernels::BlockGrid;

std::vector<int64_t> block_of(const Shape& shape, int64_t block) {
  const BlockGrid grid(shape, 64, 4096);
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < grid.elements(block); ++i) elements.push_back(grid.at(block, i));
  return elements;
}

TEST(BlockGrid, CutsMatricesIntoTilesAndVectorsIntoRuns) {
  const BlockGrid matrix({128, 96}, 64, 4096);  // tiles of 64 × 48
  EXPECT_EQ(matrix.count(), 4);
  EXPECT_EQ(matrix.elements(3), 64 * 48);
  EXPECT_EQ(matrix.at(0, 48), 96);  // the second row of the first tile
  EXPECT_EQ(matrix.at(1, 0), 48);
  EXPECT_EQ(matrix.at(2, 0), 64 * 96);
  EXPECT_EQ(block_of({2, 3}, 0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));

  const BlockGrid filters({20, 6, 5, 5}, 64, 4096);  // 20 × 150 in tiles of 20 × 50
  EXPECT_EQ(filters.count(), 3);
  EXPECT_EQ(filters.elements(0), 1000);

  const BlockGrid vector({5000}, 64, 4096);
  EXPECT_EQ(vector.count(), 2);
  EXPECT_EQ(vector.elements(1), 904);
  EXPECT_EQ(vector.at(1, 903), 4999);
}

TEST(BlockGrid, HasEveryElementOnce) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4097}, Shape{67, 130}, Shape{7, 3, 5, 5}, Shape{0, 4}}) {
    const BlockGrid grid(shape, 64, 4096);
    std::set<int64_t> seen;
    for (int64_t b = 0; b < grid.count(); ++b)
      for (int64_t i = 0; i < grid.elements(b); ++i) EXPECT_TRUE(seen.insert(grid.at(b, i)).second);
    EXPECT_EQ(std::ssize(seen), shape.numel()) << to_string(shape);
    if (shape.numel() > 0) {
      EXPECT_EQ(*seen.rbegin(), shape.numel() - 1);
    }
  }
}

// SparseLoCo: 64 elements of 4096, with a place of 12 bits and a value of 2 bits, and 5 floats a tensor.
TEST(TopKBlock, SendsATableAndLessThanAQuarterOfABitAnElement) {
  const auto codec = make_codec("topk-block");
  EXPECT_EQ(codec->traits().bits, 0.21875);
  EXPECT_EQ(codec->most_bytes({256, 256}), 256 * 256 * 7 / 32 / 8 + 20);
  EXPECT_EQ(codec->most_bytes({1}), 20 + 1);  // one value, whose place takes no bits
  const auto floats = make_codec("topk-block:keep=32,run=64,short=full,bits=32");  // DeMo
  EXPECT_EQ(floats->most_bytes({128, 64}), 2 * 32 * (12 + 32) / 8);
  EXPECT_EQ(floats->most_bytes({100}), (32 * 6 + 32 * 6) / 8 + 2 * 32 * 4);  // runs of 64 and 36
}

TEST(TopKBlock, KeepsTheLargestOfEachBlock) {
  const auto codec = make_codec("topk-block:keep=2,side=2,bits=32");
  // Tiles [[1, -9], [2, 3]] and [[0, 5], [7, -7]]; of equal magnitudes, the first.
  const Tensor g = Tensor::from<float>({2, 4}, {1, -9, 0, 5, 2, 3, 7, -7});
  EXPECT_EQ(through(*codec, g).to_vector<float>(), (std::vector<float>{0, -9, 0, 0, 0, 3, 7, -7}));
}

// Runs of 16 elements with their maxima decide what is looked at. There are many ties, within and across runs.
TEST(TopKBlock, KeepsTheFirstOfEqualMagnitudesAcrossRuns) {
  const auto codec = make_codec("topk-block:keep=20,side=32,run=1000,short=full,bits=32");
  Tensor g = Tensor::empty({1000});
  const RandomStream random({.seed = 3, .purpose = Purpose::test});
  for (size_t i = 0; i < 1000; ++i) g.span<float>()[i] = 1 + static_cast<float>(random.below(i, 50));
  std::vector<size_t> order(1000);
  for (size_t i = 0; i < 1000; ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return g.span<float>()[a] > g.span<float>()[b]; });
  std::vector<float> expected(1000);
  for (size_t i = 0; i < 20; ++i) expected[order[i]] = g.span<float>()[order[i]];
  EXPECT_EQ(through(*codec, g).to_vector<float>(), expected);
}

// By hand: v̄ = -0.2, σ = 5.404, a step 6σ/4 = 8.106. So -9 has code 1, 5 has code 3, and the others have code 2.
TEST(TopKBlock, CodesValuesByTheMeanOfTheirBin) {
  const auto codec = make_codec("topk-block:keep=5,side=1,run=5,short=full");
  const Tensor g = Tensor::from<float>({5}, {-9, 3, 5, -1, 1});
  const auto found = through(*codec, g).to_vector<float>();
  const std::vector<float> expected = {-9, 1, 5, 1, 1};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

TEST(TopKBlock, AddsTheDecayedResidualToTheNextGradient) {
  const auto codec = make_codec("topk-block:keep=1,side=2,run=4,bits=32,decay=0.5");
  EXPECT_EQ(codec->traits().promise, CodecPromise::feedback);
  const Tensor g = Tensor::from<float>({4}, {8, 6, 4, 2});
  EXPECT_EQ(through(*codec, g).to_vector<float>(), (std::vector<float>{8, 0, 0, 0}));
  const Tensor next = Tensor::from<float>({4}, {1, 1, 1, 1});  // with half of [0, 6, 4, 2]
  EXPECT_EQ(through(*codec, next).to_vector<float>(), (std::vector<float>{0, 4, 0, 0}));
}

}  // namespace
}  // namespace tern::test
