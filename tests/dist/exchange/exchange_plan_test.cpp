#include "tern/dist/exchange/plan.h"

#include <gtest/gtest.h>

#include "tern/dist/comm/collectives.h"
#include "tern/dist/cost/round_time.h"
#include "tests/dist/exchange/exchange_support.h"

namespace tern::test {
namespace {

struct Way {
  const char* exchange;
  const char* codec;
};
std::ostream& operator<<(std::ostream& stream, const Way& way) { return stream << way.exchange << " " << way.codec; }

const Way kWays[] = {{"ring", "none"},
                     {"ring", "fp16"},
                     {"allgather", "none"},
                     {"allgather", "ternary"},
                     {"allgather", "ternary:share=on"},
                     {"allgather", "ternary:pack=5trit,bucket=100"},
                     {"allgather", "qsgd:bits=4,bucket=512"},
                     {"allgather", "onebit"},
                     {"allgather", "topk:ratio=0.01"},
                     {"allgather", "error-feedback:ternary"},
                     {"reduce-scatter", "ternary"},
                     {"reduce-scatter", "ternary:share=on"},
                     {"reduce-scatter", "qsgd:bits=4,bucket=64"},
                     {"reduce-scatter", "onebit"},
                     {"reduce-scatter", "bf16"},
                     {"allgather", "qsgd:bucket=64,align=field"},
                     {"server", "none"},
                     {"server", "ternary"},
                     {"server", "qsgd:bits=2,bucket=128"},
                     {"ternary-ring", "ternary"},
                     {"allgather-sent", "topk-block"},
                     {"allgather", "hadamard"},
                     {"powersgd", "none"},
                     {"powersgd:rank=4", "none"}};

class ExchangePlans : public testing::TestWithParam<std::tuple<Way, int>> {};

TEST_P(ExchangePlans, SendWhatTheLedgerOfTheExchangeHas) {
  const auto& [way, ranks] = GetParam();
  const std::vector<Shape> shapes = {{10, 33}, {4099}, {7}, {64, 5, 5}};
  const auto results = exchange_once(transport_kinds()[0], ranks, way.exchange, way.codec, shapes);
  uint64_t sent = 0;
  for (const auto& result : results) sent += result.traffic.sent_payload;
  const auto codec = make_codec(way.codec);
  const ExchangePlan plan = plan_exchange(way.exchange, *codec, coded_tensors(*codec, shapes), ranks);
  EXPECT_EQ(plan.sent(), static_cast<int64_t>(sent));
  const auto sent_by_first = static_cast<double>(results[0].traffic.sent_payload);
  EXPECT_NEAR(plan.sent_by_first(), sent_by_first, 0.05 * sent_by_first);
}

INSTANTIATE_TEST_SUITE_P(Table, ExchangePlans,
                         testing::Combine(testing::ValuesIn(kWays), testing::Values(1, 2, 3, 4, 8)));

// Very few bytes take one message, few go directly, and many around the ring.
TEST(ExchangePlan, CountsTheMessagesThatFollowEachOther) {
  for (const auto& [ranks, few] : {std::pair<int, int64_t>{3, 3 << 20}, {4, 4 << 20}, {8, 2 << 20}}) {
    EXPECT_EQ(all_reduce_load(few, ranks).hops, 2);
    EXPECT_EQ(all_reduce_load(few + 4, ranks).hops, 2 * (ranks - 1));
    const int64_t very_few = 4096 / (ranks - 1);
    EXPECT_EQ(all_reduce_load(very_few, ranks).hops, 1);
    EXPECT_EQ(all_reduce_load(very_few, ranks).sent, ranks * (ranks - 1) * very_few);
    EXPECT_EQ(all_reduce_load(very_few + 1, ranks).hops, 2);
    EXPECT_EQ(all_reduce_load(0, ranks).hops, 0);
    EXPECT_FALSE(detail::takes_one_message(1, 1)) << "a rank alone has nothing to send, nor to copy";
    std::vector<int64_t> parts(static_cast<size_t>(ranks), few / ranks);
    EXPECT_EQ(all_gather_load(parts).hops, 1);
    parts.front() += ranks;
    EXPECT_EQ(all_gather_load(parts).hops, ranks - 1);
  }
}

TEST(ExchangePlan, KnowsWhatRank0Sends) {
  const std::vector<int64_t> parts = {10, 200, 3000}, long_parts = {10 << 20, 1 << 20, 2 << 20};
  EXPECT_EQ(all_gather_load(parts).first, 2 * 10) << "directly, its part to each other rank";
  EXPECT_EQ(all_gather_load(long_parts).first, (10 + 2) << 20) << "around the ring, all but the next rank's part";
  EXPECT_EQ(all_to_all_load(parts).first, 200 + 3000);
  EXPECT_EQ(shift_load(parts).first, 10);
  EXPECT_EQ(gather_load(parts).first, 0);
  EXPECT_EQ(scatter_load(parts).first, 200 + 3000);
  EXPECT_EQ(all_reduce_load(400, 4).first, 3 * 400) << "in one message";
  EXPECT_EQ(all_reduce_load(40000, 4).first, 60000);
}

TEST(ExchangePlan, CountsCodesOfVariableSizeAsTheyAreGiven) {
  const auto codec = make_codec("qsgd:code=entropy");
  const std::vector<CodedTensor> message = {{{4099}, 900}, {{50}, 30}};
  const ExchangePlan plan = plan_exchange("allgather", *codec, message, 4);
  EXPECT_EQ(plan.sent(), 4 * 3 * 930);
  ASSERT_EQ(plan.phases.size(), 2u);  // the lengths come first, as overhead
  EXPECT_EQ(plan.phases[0].wire.sent, 4 * 3 * 2 * 8);
}

// A rank codes its own message and decodes everyone's. On a ring it codes all parts in turn.
TEST(ExchangePlan, CountsWhatTheRankThatOthersWaitForCodesAndReads) {
  const auto ternary = make_codec("ternary");
  const auto message = coded_tensors(*ternary, std::vector<Shape>{{6400}});
  const auto work = [&](const char* exchange, int ranks) {
    const ExchangePlan plan = plan_exchange(exchange, *ternary, message, ranks);
    return std::pair(plan.encoded(), plan.decoded());
  };
  EXPECT_EQ(work("allgather", 8), std::pair(6400.0, 8 * 6400.0));
  EXPECT_EQ(work("server", 8), std::pair(2 * 6400.0, 9 * 6400.0));
  EXPECT_EQ(work("reduce-scatter", 8), std::pair(6400.0 * 9 / 8, 2 * 6400.0));
  EXPECT_EQ(work("ternary-ring", 8), std::pair(2 * 6400.0, 6400.0 * 15 / 8));
}

TEST(ExchangePlan, IsMadeForMoreRanksThanAnyMachineStarts) {
  const auto none = make_codec("none"), ternary = make_codec("ternary");
  const std::vector<Shape> shapes = {{1 << 20}};
  constexpr int64_t n = 1 << 20;
  EXPECT_EQ(plan_exchange("ring", *none, coded_tensors(*none, shapes), 512).sent(), 2 * 511 * 4 * n);
  const ExchangePlan server = plan_exchange("server", *ternary, coded_tensors(*ternary, shapes), 512);
  EXPECT_EQ(server.sent(), 511 * (n / 4 + n * 11 / 8) + 512 * 511 * 4);
}

TEST(ExchangePlan, OfTernarysDefaultIsNotAboveTheRingOfFloats) {
  const auto none = make_codec("none"), ternary = make_codec("ternary");
  const std::vector<Shape> shapes = {{500, 800}, {500}, {10, 500}, {10}};  // the linear layers of LeNet
  for (const char* link : {"rate=100mbit,latency=0.1ms", "rate=1gbit,latency=1ms"}) {
    const auto seconds = [&](const std::string& exchange, const GradientCodec& codec, int ranks) {
      const PlannedMessage message = {plan_exchange(exchange, codec, coded_tensors(codec, shapes), ranks), {}};
      return round_time({&message, 1}, cost_of(parse_link(link))).total();
    };
    for (int ranks = 2; ranks <= 64; ++ranks)
      EXPECT_LE(seconds(default_exchange(*ternary, ranks), *ternary, ranks), seconds("ring", *none, ranks))
          << ranks << " ranks, " << link;
  }
}

}  // namespace
}  // namespace tern::test
