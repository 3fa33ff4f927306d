#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tests/dist/exchange_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

struct Pair {
  const char* exchange;
  const char* codec;
};
std::ostream& operator<<(std::ostream& stream, const Pair& pair) {
  return stream << pair.exchange << " " << pair.codec;
}

const Pair kPairs[] = {
    {"ring", "none"},
    {"ring", "fp16"},
    {"ring", "bf16"},
    {"allgather", "none"},
    {"allgather", "ternary"},
    {"allgather", "ternary:share=on,bucket=100,pack=5trit"},
    {"allgather", "ternary:pack=entropy"},
    {"allgather", "qsgd"},
    {"allgather", "qsgd:bits=2,bucket=128,norm=max,code=elias"},
    {"allgather", "onebit"},
    {"allgather", "error-feedback:topk:ratio=0.1"},
};

const std::vector<Shape> kMessages[] = {{{0}}, {{1}}, {{7}, {0, 3}, {20, 1, 5, 5}, {33}}, {{100003}}};

class Exchanges : public testing::TestWithParam<std::tuple<Pair, int>> {
 protected:
  std::string exchange() const { return std::get<0>(GetParam()).exchange; }
  std::string codec() const { return std::get<0>(GetParam()).codec; }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(Exchanges, LeaveTheSameBitsOnAllRanksAndTransports) {
  for (const auto& shapes : kMessages) {
    std::vector<std::vector<float>> expected;
    for (const auto& kind : transport_kinds()) {
      const auto results = exchange_once(kind, ranks(), exchange(), codec(), shapes);
      if (expected.empty()) expected = results[0].means;
      for (const auto& result : results) EXPECT_EQ(result.means, expected) << kind;
    }
  }
}

/// Each rank's gradient through the codec on its own, and their mean in f64.
std::vector<double> mean_of_decoded(int ranks, const std::string& codec, const Shape& shape) {
  std::vector<double> mean(static_cast<size_t>(shape.numel()));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto coder = make_codec(codec);
    const auto [tag, gradient] = gradients_of(rank, {shape})[0];
    const Tensor back = through(*coder, gradient, tag);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += double{back.span<float>()[i]} / ranks;
  }
  return mean;
}

TEST_P(Exchanges, GiveTheMeanOfWhatEachRankCodes) {
  if (codec().find("share=on") != std::string::npos) return;  // its scalers are not a rank's own
  const Shape shape = {4099};
  const auto expected = mean_of_decoded(ranks(), codec(), shape);
  const auto results = exchange_once(transport_kinds()[0], ranks(), exchange(), codec(), {shape});
  // A ring of 16 bits rounds each hop's sum: N + 1 times at most, to 11 or 8 bits.
  const double precision = codec() == "fp16" ? 0x1p-11 : codec() == "bf16" ? 0x1p-8 : 0x1p-23;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(results[0].means[0][i], expected[i], (ranks() + 1) * precision * 8) << i;
}

INSTANTIATE_TEST_SUITE_P(Table, Exchanges, testing::Combine(testing::ValuesIn(kPairs), testing::Values(1, 2, 3, 4, 8)));

TEST(ExchangeGrid, RefusesAPairAndNamesTheOnesThatGo) {
  EXPECT_EQ(message_of<InputError>([] { check_exchange("ring", *make_codec("topk:ratio=0.1")); }),
            "exchange ring takes none, fp16 and bf16, not topk:ratio=0.1; that goes by allgather");
  EXPECT_EQ(message_of<InputError>([] { check_exchange("rign", *make_codec("none")); }),
            "no exchange 'rign'; there are ring, allgather");
}

TEST(ExchangeGrid, IsInTheHelp) {
  const std::string help = exchange_help();
  for (const std::string& name : exchange_names()) EXPECT_NE(help.find("\n" + name + "\n"), std::string::npos) << name;
}

TEST(DefaultExchange, MovesLeast) {
  const auto of = [](const char* codec, int ranks) { return default_exchange(*make_codec(codec), ranks); };
  EXPECT_EQ(of("none", 2), "ring");
  EXPECT_EQ(of("bf16", 16), "ring");
  EXPECT_EQ(of("ternary", 31), "allgather");
  EXPECT_EQ(of("qsgd:bits=4", 15), "allgather");
  EXPECT_EQ(of("error-feedback:topk", 64), "allgather");
}

}  // namespace
}  // namespace tern::test
