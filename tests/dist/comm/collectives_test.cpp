#include <gtest/gtest.h>

#include "tests/dist/comm/collective_cases.h"
#include "tests/dist/comm/nccl.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

/// The place of the tensors: the CPU, one CUDA device that all ranks share, or one device per rank with NCCL.
enum class Carrier { cpu, cuda, nccl };

class Collectives : public testing::TestWithParam<std::tuple<TransportKind, int, Carrier>> {
 protected:
  void SetUp() override {
    const std::string missing = carrier() == Carrier::cpu    ? ""
                                : carrier() == Carrier::cuda ? why_no_cuda()
                                                             : why_no_nccl(ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  int ranks() const { return std::get<1>(GetParam()); }
  Carrier carrier() const { return std::get<2>(GetParam()); }
  Device device(const Communicator& c) const {
    if (carrier() == Carrier::cpu) return {};
    return {DeviceType::cuda, carrier() == Carrier::nccl ? c.rank() : 0};
  }
  template <class Body>
  std::vector<std::string> with_all(const Body& body) const {
    Transports transports = std::get<0>(GetParam()).make(ranks(), {});
    if (carrier() == Carrier::nccl) return with_nccl(std::move(transports), {}, body);
    return with_communicators(std::move(transports), body);
  }
  std::vector<std::string> silence() const { return std::vector<std::string>(ranks()); }
};

TEST_P(Collectives, GiveTheirClosedForms) {
  EXPECT_EQ(with_all([&](Communicator& c) { check_closed_forms(c, device(c)); }), silence());
}

TEST_P(Collectives, SumsHaveTheSameBitsOnAllRanks) {
  std::vector<std::vector<float>> results(ranks());
  const auto errors = with_all([&](Communicator& c) { results[c.rank()] = rounded_sums(c, 1000, device(c)); });
  EXPECT_EQ(errors, silence());
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(Collectives, MoveEveryDtype) {
  EXPECT_EQ(with_all([&](Communicator& c) { check_dtypes(c, device(c)); }), silence());
}

TEST_P(Collectives, CountPayloadByTheFormulas) {
  EXPECT_EQ(with_all([&](Communicator& c) { check_payload(c, device(c)); }), silence());
}

TEST_P(Collectives, CountTheWriteOfTheirOutputAlone) {
  EXPECT_EQ(with_all([&](Communicator& c) { check_writes(c, device(c)); }), silence());
}

std::string name_of(const testing::TestParamInfo<Collectives::ParamType>& test) {
  const auto& [kind, ranks, carrier] = test.param;
  constexpr const char* kCarriers[] = {"", "_Cuda", "_CudaNccl"};
  return kind.name + "_" + std::to_string(ranks) + kCarriers[static_cast<int>(carrier)];
}

INSTANTIATE_TEST_SUITE_P(Table, Collectives,
                         testing::Combine(testing::ValuesIn(transport_kinds()), testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(Carrier::cpu, Carrier::cuda, Carrier::nccl)),
                         name_of);

}  // namespace
}  // namespace tern::test
