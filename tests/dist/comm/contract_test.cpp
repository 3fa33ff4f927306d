#include "tern/dist/comm/contract.h"

#include <gtest/gtest.h>

#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

const std::string kExpected = "; expected the same on all ranks";

std::vector<std::string> compare(const std::vector<Contract>& contracts) {
  return with_communicators(make_in_process(static_cast<int>(contracts.size())),
                            [&](Communicator& c) { compare_contracts(c, contracts[c.rank()]); });
}

TEST(Contract, EqualOnesPass) {
  const Contract same = {{"lr", "0.1"}, {"codec", ""}};
  EXPECT_EQ(compare({same, same, same}), std::vector<std::string>(3));
  EXPECT_EQ(compare({{}, {}}), std::vector<std::string>(2));
}

TEST(Contract, TheFirstDifferenceIsNamedOnAllRanks) {
  const Contract first = {{"model", "lenet"}, {"lr", "0.1"}}, other = {{"model", "lenet"}, {"lr", "0.01"}};
  EXPECT_EQ(compare({first, first, first, other}),
            std::vector<std::string>(4, "rank 3: lr=0.01, rank 0: lr=0.1" + kExpected));
}

TEST(Contract, AMissingNameIsADifference) {
  const Contract two = {{"lr", "0.1"}, {"seed", "1"}}, one = {{"lr", "0.1"}};
  EXPECT_EQ(compare({two, one}), std::vector<std::string>(2, "rank 1: no seed, rank 0: seed=1" + kExpected));
  EXPECT_EQ(compare({one, two}), std::vector<std::string>(2, "rank 1: seed=1, rank 0: no seed" + kExpected));
}

TEST(Contract, AValueIsToldBeforeAMissingNameThatFollowsFromIt) {
  const Contract shared = {{"method", "data-parallel"}}, local = {{"local-steps", "10"}, {"method", "local-sgd"}};
  const std::string sentence = "rank 1: method=local-sgd, rank 0: method=data-parallel" + kExpected;
  EXPECT_EQ(compare({shared, local}), std::vector<std::string>(2, sentence));
}

TEST(Contract, AnEmptyValueReadsAsNotGiven) {
  EXPECT_EQ(compare({{{"keep-float", ""}}, {{"keep-float", "fc2.*"}}}),
            std::vector<std::string>(2, "rank 1: keep-float=fc2.*, rank 0: keep-float=not given" + kExpected));
}

}  // namespace
}  // namespace tern::test
