#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/dist/comm/collective_cases.h"
#include "tests/dist/exchange/exchange_support.h"
#include "tests/dist/mpi/job.h"

namespace tern::test {
namespace {

TEST(Collectives, GiveTheirClosedForms) { check_closed_forms(mpi_job(), {}); }
TEST(Collectives, MoveEveryDtype) { check_dtypes(mpi_job(), {}); }
TEST(Collectives, CountPayloadByTheFormulas) { check_payload(mpi_job(), {}); }
TEST(Collectives, CountTheWriteOfTheirOutputAlone) { check_writes(mpi_job(), {}); }

// MPI chooses its algorithm by the number of bytes.
TEST(Collectives, SumsHaveTheSameBitsOnAllRanks) {
  Communicator& c = mpi_job();
  for (const int64_t count : {1, 1000, 5000, 100003, 3000017}) {
    const std::vector<float> mine = rounded_sums(c, count, {});
    Tensor first = Tensor::from<float>({count}, mine);
    c.broadcast(first, 0).wait();
    EXPECT_EQ(first.to_vector<float>(), mine) << count;
  }
}

TEST(Collectives, KeepANaN) {
  Communicator& c = mpi_job();
  const float mine = c.rank() == c.size() - 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    Tensor x = Tensor::full({3}, mine, {.dtype = dtype});
    c.all_reduce(x, Reduction::max).wait();
    for (const double found : x.to_vector<double>()) EXPECT_TRUE(std::isnan(found)) << to_string(dtype);
  }
}

TEST(Collectives, MayAllBeUnderWayAtOnce) {
  Communicator& c = mpi_job();
  std::vector<Tensor> sums;
  std::vector<Work> works;
  for (int i = 0; i < 50; ++i) works.push_back(c.all_reduce(sums.emplace_back(Tensor::full({i}, i))));
  for (const Work& work : works) work.wait();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sums[i].to_vector<float>(), std::vector<float>(i, i * c.size()));
}

/// Whether the exchange adds up floats by all-reduce, in the communicator's own order.
bool sums_floats(const ExchangePair& pair) {
  const std::string exchange = pair.exchange;
  return exchange.starts_with("powersgd") || (exchange == "ring" && std::string(pair.codec) == "none");
}

/// The relative error of a sum of N floats is at most N - 1 roundings of half a unit in the last place, 2^-24. PowerSGD
/// multiplies such sums: its products of `rank` terms keep the bound of their factors, up to the factor below.
double bound_of(const ExchangePair& pair, int ranks) {
  return (ranks - 1) * 0x1p-24 * (std::string_view(pair.exchange).starts_with("powersgd") ? 100 : 2);
}

class ExchangesOfRanks : public testing::TestWithParam<ExchangePair> {};

TEST_P(ExchangesOfRanks, GiveTheMeansAndThePayloadOfThreads) {
  Communicator& c = mpi_job();
  const ExchangePair pair = GetParam();
  for (const auto& shapes : kExchangeShapes) {
    const TransportKind threads = {"threads",
                                   [](int n, const Deadlines& limits) { return make_in_process(n, limits); }};
    const Exchanged expected = exchange_once(threads, c.size(), pair.exchange, pair.codec, shapes)[c.rank()];
    const Exchanged found = exchange_on(c, pair.exchange, pair.codec, shapes);
    EXPECT_EQ(found.traffic.sent_payload, expected.traffic.sent_payload);
    EXPECT_EQ(found.traffic.received_payload, expected.traffic.received_payload);
    if (!sums_floats(pair)) {
      EXPECT_EQ(found.means, expected.means);
      continue;
    }
    // Summands are standard normal numbers, so that sums of their magnitudes stay below this.
    const double largest = 8;
    for (size_t i = 0; i < found.means.size(); ++i)
      for (size_t k = 0; k < found.means[i].size(); ++k)
        ASSERT_NEAR(found.means[i][k], expected.means[i][k], largest * bound_of(pair, c.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ExchangesOfRanks, testing::ValuesIn(kExchangePairs));

}  // namespace
}  // namespace tern::test
