#include "tern/dist/comm/mpi.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/mpirun.h"
#include "tests/support/process.h"

namespace tern::test {
namespace {

TEST(Mpi, TellsItsVersionOrThePackageThatIsMissing) {
  try {
    EXPECT_FALSE(mpi_version().empty());
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("libopenmpi-dev"), std::string::npos) << error.what();
  }
}

class MpiJob : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_mpi(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static std::vector<std::string> rank(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {TERN_MPI_RANK};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
};

class MpiTables : public MpiJob, public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(MpiTables, Hold) {
  const auto& [table, ranks] = GetParam();
  const Outcome outcome = run_program(mpirun(ranks, rank({std::string("--gtest_filter=*") + table + "*"})));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("[  PASSED  ]"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("Running 0 tests"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

INSTANTIATE_TEST_SUITE_P(All, MpiTables,
                         testing::Combine(testing::Values("Collectives", "Exchanges"), testing::Values(1, 2, 3, 4)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + ("_" + std::to_string(std::get<1>(test.param)));
                         });

// Open MPI's decision tables choose among these by size and ranks.
TEST_F(MpiJob, EveryAlgorithmOfOpenMpiGivesTheSameBitsOnAllRanks) {
  if (!mpi_version().starts_with("Open MPI")) GTEST_SKIP() << mpi_version() << " has other algorithms";
  constexpr int kAlgorithms = 6;
  for (int algorithm = 1; algorithm <= kAlgorithms; ++algorithm)
    for (const int ranks : {3, 4}) {
      auto command = mpirun(ranks, rank({"--gtest_filter=Collectives.SumsHaveTheSameBitsOnAllRanks"}));
      command.insert(command.begin() + 1, {"OMPI_MCA_coll_tuned_use_dynamic_rules=1",
                                           "OMPI_MCA_coll_tuned_allreduce_algorithm=" + std::to_string(algorithm)});
      const Outcome outcome = run_program(command);
      EXPECT_EQ(outcome.code, 0) << algorithm << " with " << ranks << " ranks: " << outcome.out << outcome.err;
      EXPECT_NE(outcome.out.find("Running 1 test from"), std::string::npos) << outcome.out;
    }
}

struct Fault {
  const char *name, *sentence;
};
std::ostream& operator<<(std::ostream& stream, const Fault& fault) { return stream << fault.name; }

class MpiFaults : public MpiJob, public testing::WithParamInterface<Fault> {};

TEST_P(MpiFaults, EndTheJobInTimeWithOneSentence) {
  Process job(mpirun(3, rank({"--break", GetParam().name})));
  EXPECT_TRUE(job.ends_within(std::chrono::seconds(20)));
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, kMpiAborted) << outcome.err;
  // A launcher that is slow to end the other ranks lets them say the same.
  const std::string begin = std::string("tern: rank 1 ") + GetParam().sentence;
  size_t place = outcome.err.find("tern: ");
  EXPECT_NE(place, std::string::npos) << outcome.err;
  for (; place != std::string::npos; place = outcome.err.find("tern: ", place + 1))
    EXPECT_EQ(outcome.err.substr(place, begin.size()), begin) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Table, MpiFaults,
    testing::Values(Fault{"adds-more", "calls all_reduce_sum 3 of 11 f32, rank 0 calls all_reduce_sum 3 of 10 f32"},
                    Fault{"broadcasts", "calls broadcast 3 of 10 f32, rank 0 calls all_reduce_sum 3 of 10 f32"},
                    Fault{"passes-on-more", "expects 7 elements from rank 0, which sends more in shift 3 of f32"},
                    Fault{"passes-on-less", "expects 7 elements from rank 0, which sends 6 in shift 3 of f32"},
                    Fault{"hangs", "hangs: it lives, but has stood at operation 2 for "},
                    Fault{"is-stopped", "is silent for "},
                    Fault{"leaves", "leaves, rank 0 calls all_reduce_sum 3 of 10 f32"},
                    Fault{"gives-up", "ended: out of luck"}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::erase(name, '-');
      return name;
    });

// The launcher sees that before any watchdog.
TEST_F(MpiJob, AKilledRankEndsTheJobAndTheLauncherNamesIt) {
  Process job(mpirun(3, rank({"--break", "is-killed"})));
  EXPECT_TRUE(job.ends_within(std::chrono::seconds(20)));
  const Outcome outcome = job.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE((outcome.out + outcome.err).find("rank 1"), std::string::npos) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace tern::test
