#include <gtest/gtest.h>

#include <algorithm>

#include "tern/kernels/codec.h"
#include "tests/dist/exchange/exchange_support.h"

namespace tern::test {
namespace {

/// The bytes that a rank sends to share a scaler: its all-reduce sends it to each other rank.
double scaler_bytes(int ranks) { return 4.0 * (ranks - 1); }

/// An exchange, a codec, and the bytes that rank r of N sends for n elements. n is a multiple of 64 N. The formulas are
/// those of the table in docs/distributed.md, plus the scalers.
struct Formula {
  const char* exchange;
  const char* codec;
  double (*bytes)(double n, int ranks, int rank);
};
std::ostream& operator<<(std::ostream& stream, const Formula& formula) {
  return stream << formula.exchange << " " << formula.codec;
}

/// ⌈log2(2k + 1)⌉
int bits_of_sums(int k) {
  int bits = 0;
  while ((1 << bits) < 2 * k + 1) ++bits;
  return bits;
}

double ternary_ring_bits(int ranks) {
  double bits = (ranks - 1.0) / ranks * bits_of_sums(ranks);
  for (int k = 1; k < ranks; ++k) bits += bits_of_sums(k) / double(ranks);
  return bits;
}

const Formula kFormulas[] = {
    {"ring", "none", [](double n, int N, int) { return 2 * (N - 1) * n / N * 4; }},
    {"ring", "fp16", [](double n, int N, int) { return 2 * (N - 1) * n / N * 2; }},
    {"ring", "bf16", [](double n, int N, int) { return 2 * (N - 1) * n / N * 2; }},
    {"allgather", "none", [](double n, int N, int) { return (N - 1) * 4 * n; }},
    {"allgather", "ternary", [](double n, int N, int) { return (N - 1) * (n * 2 / 8 + 4); }},
    {"allgather", "ternary:share=on", [](double n, int N, int) { return (N - 1) * n * 2 / 8 + scaler_bytes(N); }},
    {"allgather", "qsgd:bucket=64", [](double n, int N, int) { return (N - 1) * (n * 4 / 8 + 4 * n / 64); }},
    {"reduce-scatter", "ternary", [](double n, int N, int) { return 2 * (N - 1) * (n / N * 2 / 8 + 4); }},
    {"reduce-scatter", "qsgd:bucket=64", [](double n, int N, int) { return 2 * (N - 1) * n / N * (0.5 + 4.0 / 64); }},
    {"reduce-scatter", "bf16", [](double n, int N, int) { return 2 * (N - 1) * n / N * 2; }},
    {"server", "none", [](double n, int N, int r) { return r == 0 ? (N - 1) * 4 * n : 4 * n; }},
    {"server", "qsgd:bucket=64",
     [](double n, int N, int r) { return r == 0 ? (N - 1) * 4 * n : n * 4 / 8 + 4 * n / 64; }},
    {"server", "ternary",
     [](double n, int N, int r) { return (r == 0 ? (N - 1) * n * bits_of_sums(N) / 8 : n * 2 / 8) + scaler_bytes(N); }},
    {"ternary-ring", "ternary", [](double n, int N, int) { return n * ternary_ring_bits(N) / 8 + scaler_bytes(N); }},
};

class ExchangeBytes : public testing::TestWithParam<std::tuple<Formula, int>> {};

TEST_P(ExchangeBytes, AreTheFormulasOnTheLedger) {
  const auto& [formula, ranks] = GetParam();
  const int64_t n = 64 * ranks * 5;
  for (const auto& kind : transport_kinds()) {
    const auto results = exchange_once(kind, ranks, formula.exchange, formula.codec, {{n}});
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(static_cast<double>(results[static_cast<size_t>(rank)].traffic.sent_payload),
                ranks == 1 ? 0 : formula.bytes(static_cast<double>(n), ranks, rank))
          << kind << ", rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ExchangeBytes,
                         testing::Combine(testing::ValuesIn(kFormulas), testing::Values(1, 2, 3, 4, 8)));

// Parts of a tensor that the ranks do not share evenly. A part has whole groups of 32 codes, but the last may be
// shorter.
struct Parts {
  std::vector<int64_t> counts;
  double bytes(int part, int bits) const {
    const int64_t count = counts[static_cast<size_t>(part) % counts.size()];
    return static_cast<double>(bits * (count / 32 * 4 + (count % 32 + 7) / 8));
  }
};

TEST(ExchangeBytesOfUnevenParts, AreTheFormulasOfEachPart) {
  constexpr int64_t n = 4099;  // 129 groups
  for (const int ranks : {2, 3, 8}) {
    Parts groups, elements;
    for (int64_t r = 0; r < ranks; ++r) {
      groups.counts.push_back(std::min(n, 129 * (r + 1) / ranks * 32) - 129 * r / ranks * 32);
      elements.counts.push_back((r + 1 == ranks ? n : n * (r + 1) / ranks / 32 * 32) - n * r / ranks / 32 * 32);
    }
    const auto around = exchange_once(transport_kinds()[0], ranks, "ternary-ring", "ternary", {{n}});
    const auto twice = exchange_once(transport_kinds()[0], ranks, "reduce-scatter", "ternary", {{n}});
    for (int rank = 0; rank < ranks; ++rank) {
      // In reduce-scatter, a rank's part of the mean goes directly to all others. The parts of the ring have other
      // sizes.
      double ring = scaler_bytes(ranks), scatter = (ranks - 1) * (4 + elements.bytes(rank, 2));
      for (int k = 1; k < ranks; ++k) {
        ring += groups.bytes(rank + ranks - k, bits_of_sums(k));
        scatter += 4 + elements.bytes(rank + k, 2);
      }
      ring += (ranks - 1) * groups.bytes(rank, bits_of_sums(ranks));
      EXPECT_EQ(static_cast<double>(around[static_cast<size_t>(rank)].traffic.sent_payload), ring);
      EXPECT_EQ(static_cast<double>(twice[static_cast<size_t>(rank)].traffic.sent_payload), scatter);
    }
  }
}

TEST(ExchangeBytesOfTheTernaryRing, AreTheDefinitionsFigures) {
  EXPECT_EQ(ternary_ring_bits(2), 2.5);
  EXPECT_EQ(ternary_ring_bits(4), 5);
  EXPECT_EQ(ternary_ring_bits(8), 7.375);
  EXPECT_EQ(ternary_ring_bits(16), 9.625);
}

// The lengths count as overhead. The payload is the codes alone; all but one rank pass on each message.
TEST(ExchangeBytesOfVariableCodes, AreTheCodes) {
  const std::vector<Shape> shapes = {{4099}, {0}, {50}};
  for (const int ranks : {2, 3, 8}) {
    uint64_t coded = 0, sent = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (const auto& [tag, gradient] : gradients_of(rank, shapes))
        coded += encoded(*make_codec("qsgd:code=entropy"), gradient, tag).size();
    for (const auto& result : exchange_once(transport_kinds()[0], ranks, "allgather", "qsgd:code=entropy", shapes))
      sent += result.traffic.sent_payload;
    EXPECT_EQ(sent, static_cast<uint64_t>(ranks - 1) * coded) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace tern::test
