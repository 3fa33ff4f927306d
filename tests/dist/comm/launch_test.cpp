#include "tern/dist/comm/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<ClusterPlace> place_in(const Variables& variables) {
  return find_place([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables operator+(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

std::optional<ClusterPlace> mpi_place_in(const Variables& variables) {
  return find_mpi_place([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "10.0.0.1"},
                             {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "815"}};
const Variables kSrun = {{"SLURM_PROCID", "5"},
                         {"SLURM_STEP_NUM_TASKS", "6"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1(x2)"},
                         {"SLURM_NODEID", "3"},
                         {"SLURM_STEP_NODELIST", "gpu[07-09],login"},
                         {"SLURM_JOB_ID", "42"}};

TEST(ClusterPlace, IsNoneWhereNothingTells) {
  EXPECT_FALSE(place_in({}));
  EXPECT_FALSE(place_in({{"SLURM_PROCID", "0"}})) << "a batch script is no rank";
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}})) << "one process alone is no cluster";
}

// MPI knows where the ranks are, so no address is needed, and one rank is a job, too.
TEST(ClusterPlace, OfAnMpiJobNeedsNoAddress) {
  EXPECT_FALSE(mpi_place_in({}));
  EXPECT_FALSE(mpi_place_in(kTorchrun)) << "torchrun starts no MPI jobs";
  EXPECT_EQ(mpi_place_in({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}})->size, 1);
  const auto apart = mpi_place_in({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(apart->rank, 3);
  EXPECT_EQ(apart->source, "MPICH (PMI_RANK, PMI_SIZE)");
  EXPECT_EQ(mpi_place_in(kOpenMpi + kSrun)->size, 4) << "mpirun inside an allocation";
  EXPECT_EQ(mpi_place_in(kSrun)->size, 6);
}

TEST(ClusterPlace, ReadsTorchrun) {
  const auto place = place_in(kTorchrun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->local_size, 2);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(to_string(place->master), "10.0.0.1:29500");
  EXPECT_EQ(place->source, "torchrun (RANK, WORLD_SIZE)");
  EXPECT_EQ(place->epoch, 0);
}

TEST(ClusterPlace, LeavesTorchrunsStoreItsPort) {
  const auto place =
      place_in(kTorchrun + Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(place->master.port, 29501);
  EXPECT_EQ(place_in(kTorchrun + Variables{{"TERN_MASTER_PORT", "4000"}})->master.port, 4000);
}

// Each machine's torchrun counts its own restarts. A machine that takes the place of another one begins with 0.
TEST(ClusterPlace, TorchrunsCountOfRestartsIsNoEpoch) {
  const auto first = place_in(kTorchrun + Variables{{"TORCHELASTIC_RESTART_COUNT", "0"}});
  const auto again = place_in(kTorchrun + Variables{{"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(first->epoch, again->epoch);
  EXPECT_EQ(first->restarted_here, std::optional(false));
  EXPECT_EQ(again->restarted_here, std::optional(true));
}

// Machines resolve a name differently: Debian takes its own for 127.0.1.1. So no name is looked up.
TEST(ClusterPlace, CountsRanksAsLocalByTheAddressesTextAlone) {
  const Variables two = {{"TERN_RANK", "1"}, {"TERN_WORLD_SIZE", "2"}};
  EXPECT_EQ(place_in(two + Variables{{"TERN_MASTER_ADDR", "localhost"}})->local_size, 2);
  EXPECT_EQ(place_in(two + Variables{{"TERN_MASTER_ADDR", "0.0.0.0"}})->local_size, 1);
  EXPECT_EQ(place_in(two + Variables{{"TERN_MASTER_ADDR", "no-such-host.invalid"}})->local_size, 1);
  EXPECT_EQ(place_in(two + Variables{{"TERN_MASTER_ADDR", "localhost"}, {"TERN_LOCAL_WORLD_SIZE", "1"}})->local_size, 1)
      << "what the environment says counts";
}

TEST(ClusterPlace, NeedsAllThatTorchrunSets) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    Variables some = kTorchrun;
    some.erase(name);
    const std::string message = message_of<InputError>([&] { place_in(some); });
    EXPECT_TRUE(message.starts_with(std::string(name) + " is not set, expected ")) << message;
  }
}

TEST(ClusterPlace, ReadsOpenMpiOnOneMachine) {
  const auto place = place_in(kOpenMpi);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->master.host, "127.0.0.1");
  EXPECT_GE(place->master.port, 20000);
  EXPECT_LT(place->master.port, 30000);
  auto other_job = kOpenMpi;
  other_job["PMIX_NAMESPACE"] = "816";
  EXPECT_NE(place_in(other_job)->master.port, place->master.port);
}

TEST(ClusterPlace, NeedsTheMasterThatMpiDoesNotTell) {
  auto two_machines = kOpenMpi;
  two_machines["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(message_of<InputError>([&] { place_in(two_machines); }),
            "TERN_MASTER_ADDR is not set, expected rank 0's address, which Open MPI does not give");
  EXPECT_EQ(message_of<InputError>([] {
              place_in({{"TERN_RANK", "0"}, {"TERN_WORLD_SIZE", "2"}});
            }),
            "TERN_MASTER_ADDR is not set, expected rank 0's address");
  EXPECT_EQ(place_in(two_machines + Variables{{"TERN_MASTER_ADDR", "node1"}})->master.host, "node1");
}

TEST(ClusterPlace, ReadsSrunAndNotABatchScript) {
  const auto place = place_in(kSrun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 5);
  EXPECT_EQ(place->size, 6);
  EXPECT_EQ(place->local_size, 1);
  EXPECT_EQ(place->master.host, "gpu07");
  EXPECT_FALSE(place_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "42"}}));
}

TEST(ClusterPlace, MpirunInsideAnAllocationCountsBeforeSlurm) {
  EXPECT_EQ(place_in(kOpenMpi + kSrun)->source, "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)");
}

TEST(ClusterPlace, RefusesLaunchersThatContradictEachOther) {
  const std::string message = message_of<InputError>([] { place_in(kTorchrun + kOpenMpi); });
  EXPECT_NE(message.find("rank 3 of 4"), std::string::npos) << message;
  EXPECT_NE(message.find("rank 2 of 4"), std::string::npos) << message;
  const Variables own = {{"TERN_RANK", "1"}, {"TERN_WORLD_SIZE", "2"}, {"TERN_MASTER_ADDR", "127.0.0.1"}};
  const auto place = place_in(kTorchrun + kOpenMpi + own);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->local_size, 2) << "all meet on the loopback";
  EXPECT_EQ(place->local_rank, 1);
}

// With `srun --gpus-per-task=1`, each rank sees only its own GPU.
TEST(ClusterPlace, TakesAGpuAmongThoseThatItSees) {
  const auto gpu = [](int local_rank, int visible) { return to_string(gpu_of({.local_rank = local_rank}, visible)); };
  EXPECT_EQ(gpu(0, 1), "cuda:0");
  EXPECT_EQ(gpu(3, 1), "cuda:0");
  EXPECT_EQ(gpu(3, 4), "cuda:3");
  EXPECT_EQ(gpu(5, 4), "cuda:1");
}

TEST(ClusterPlace, RefusesNoNumbers) {
  for (const Variables& variables :
       {Variables{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, Variables{{"RANK", "x"}, {"WORLD_SIZE", "4"}},
        Variables{{"TERN_RANK", "0"}}, Variables{{"TERN_WORLD_SIZE", "2"}}, Variables{{"PMI_RANK", "1"}},
        Variables{{"OMPI_COMM_WORLD_RANK", "1"}}})
    EXPECT_NE(message_of<InputError>([&] { place_in(variables); }).find("RANK"), std::string::npos);
}

TEST(ClusterPlace, ReadsSlurmsLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("a,b[1-2]"), "a");
  EXPECT_EQ(first_host("rack[2,4]n[010-012],x"), "rack2n010");
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_THROW(tasks_on_node("2(x3),1", 4), InputError);
}

}  // namespace
}  // namespace tern
