#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

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

// The maxima of sets of 16 elements decide what is looked at. There are many ties, within and across sets.
TEST(TopKBlock, KeepsTheFirstOfEqualMagnitudesAcrossSets) {
  Tensor g = Tensor::empty({1000});
  const RandomStream random({.seed = 3, .purpose = Purpose::test});
  for (size_t i = 0; i < 1000; ++i) g.span<float>()[i] = 1 + static_cast<float>(random.below(i, 50));
  std::vector<size_t> order(1000);
  for (size_t i = 0; i < 1000; ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return g.span<float>()[a] > g.span<float>()[b]; });
  std::vector<float> expected(1000);
  for (size_t i = 0; i < 20; ++i) expected[order[i]] = g.span<float>()[order[i]];
  for (const char* spec : {"topk-block:keep=20,side=32,run=1000,short=full,bits=32", "topk:ratio=0.02"})
    EXPECT_EQ(through(*make_codec(spec), g).to_vector<float>(), expected) << spec;
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

TEST(TopKBlock, RefusesValuesThatTheTableCannotHold) {
  const auto codec = make_codec("topk-block:keep=5,side=1,run=5,short=full");
  const Tensor g = Tensor::from<float>({5}, {3e38f, -3e38f, -3e38f, -3e38f, -3e38f});
  const std::string found = message_of<InputError>([&] { encoded(*codec, g); });
  EXPECT_NE(found.find("tensor 'conv1.weight': found values whose table leaves the range of f32"), std::string::npos)
      << found;
}

TEST(TopKBlock, RefusesDamagedMessages) {
  const auto codec = make_codec("topk-block:keep=2,side=3,run=9,short=full");  // 20 bytes, 2 · 4 bits, 2 · 2 bits
  const std::vector<std::byte> whole = encoded(*codec, Tensor::from<float>({9}, {0, 0, 5, 0, 0, 0, 0, 4, 0}));
  ASSERT_EQ(whole.size(), 22u);
  EXPECT_EQ(whole[20], std::byte{0x27});
  const auto refusal = [&](size_t at, uint8_t byte) {
    std::vector<std::byte> damaged = whole;
    damaged[at] = std::byte{byte};
    Tensor total = Tensor::zeros({9});
    return message_of<Error>([&] { codec->decode_add(tag(), damaged, total); });
  };
  const auto says = [](const std::string& found, const char* expected) {
    EXPECT_NE(found.find(expected), std::string::npos) << found;
  };
  says(refusal(20, 0x29), "block 0 of a message keeps element 9 after 2, expected rising ones below 9");
  says(refusal(20, 0x22), "block 0 of a message keeps element 2 after 2");
  says(refusal(21, 0xff), "a message has 4 bits after its values that are not all 0");
  says(refusal(3, 0x7f), "a message has a table that is not finite");
  says(refusal(20, 0x29), "tensor 'conv1.weight'");
}

}  // namespace
}  // namespace tern::test
