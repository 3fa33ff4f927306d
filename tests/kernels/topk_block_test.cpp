#include "tern/kernels/topk_block.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using namespace kernels;

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

// Sums over all blocks, beside the closed forms.
TEST(TopKBlockLayout, PutsEachBlockBehindTheOnesBefore) {
  const TopKBlockOptions variants[] = {{},
                                       {.keep = 32, .run = 64, .short_in_full = true, .coded_values = false},
                                       {.keep = 3, .side = 5, .run = 7},
                                       {.keep = 1, .side = 1, .run = 1}};
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{65}, Shape{4097}, Shape{67, 130}, Shape{7, 3, 5, 5}, Shape{0, 4}})
    for (const TopKBlockOptions& options : variants) {
      const TopKBlockLayout layout(shape, options);
      int64_t kept = 0, bits = 0;
      for (int64_t b = 0; b < layout.grid.count(); ++b) {
        EXPECT_EQ(layout.kept_before(b), kept);
        EXPECT_EQ(layout.places_begin(b), bits);
        EXPECT_GE(int64_t{1} << layout.place_bits(b), layout.grid.elements(b));
        for (int64_t i = 0; i < layout.kept(b) * layout.place_bits(b); ++i) EXPECT_EQ(layout.block_of_bit(bits + i), b);
        kept += layout.kept(b);
        bits += layout.kept(b) * layout.place_bits(b);
      }
      EXPECT_EQ(layout.kept(), kept);
      EXPECT_EQ(layout.place_bytes(), (bits + 7) / 8);
      const int64_t table = kept > 0 && options.coded_values ? 20 : 0;
      EXPECT_EQ(layout.bytes(), table + (bits + 7) / 8 + (options.coded_values ? (2 * kept + 7) / 8 : 4 * kept));
    }
}

struct Encoded {
  std::vector<uint8_t> codes;
  bool broken;
};
Encoded encode_on(Target target, const Tensor& g, const TopKBlockOptions& options) {
  Tensor codes = Tensor::empty({TopKBlockLayout(g.shape(), options).bytes()}, {.dtype = DType::u8});
  Tensor broken = Tensor::zeros({1});
  topk_block_encode.on(target)(g, options, codes, broken);
  return {codes.to_vector<uint8_t>(), broken.item() == 1};
}

// By hand: a run of 64 with places of 6 bits, and a rest of two with places of one bit.
TEST(TopKBlock, HasTheBytesOfItsFormat) {
  Tensor g = Tensor::zeros({66});
  g.data<float>()[3] = 1;
  g.data<float>()[40] = -2;
  g.data<float>()[65] = 0.5f;
  for (const Target target : {Target::reference, Target::cpu}) {
    // Places 3 and 40, 0 and 1: 000011 101000 0 1, and two zeros. Then 1, -2, 0 and 0.5.
    EXPECT_EQ(
        encode_on(target, g, {.keep = 2, .side = 8, .run = 64, .short_in_full = true, .coded_values = false}).codes,
        (std::vector<uint8_t>{0x0e, 0x84, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0x3f}));
    // The table: the mean -0.75, and the offsets -1.25 and 1.25, because -2 and 0.5 have codes of their own. Places 40
    // and 1: 101000 1, and a zero. Codes 00 01, and zeros.
    EXPECT_EQ(
        encode_on(target, g, {.keep = 1, .side = 8, .run = 64, .short_in_full = true}).codes,
        (std::vector<uint8_t>{0,    0,   0x40, 0xbf, 0, 0, 0xa0, 0xbf, 0, 0, 0xa0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0,  //
                              0xa2, 0x10}));
  }
}

TEST(TopKBlock, SaysIfAGradientIsBroken) {
  for (const Target target : {Target::reference, Target::cpu})
    for (const bool coded : {false, true}) {
      Tensor g = Tensor::zeros({200});
      EXPECT_FALSE(encode_on(target, g, {.coded_values = coded}).broken);
      for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        g.data<float>()[77] = wrong;
        EXPECT_TRUE(encode_on(target, g, {.coded_values = coded}).broken);
      }
      for (float& value : g.span<float>()) value = std::bit_cast<float>(0x7fffffffu);  // the NaN that a GPU makes
      EXPECT_TRUE(encode_on(target, g, {.coded_values = coded}).broken);
    }
}

TEST(TopKBlock, RefusesOptionsThatCannotBe) {
  const auto refusal = [](const TopKBlockOptions& options) {
    return message_of<Error>([&] { TopKBlockLayout({4}, options); });
  };
  EXPECT_NE(refusal({.keep = 0}).find("keep is 0"), std::string::npos);
  EXPECT_NE(refusal({.side = 4097}).find("side 4097"), std::string::npos);
  EXPECT_NE(refusal({.run = 0}).find("run 0"), std::string::npos);
}

}  // namespace
}  // namespace tern::test
