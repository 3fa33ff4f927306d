#include "tern/dist/comm/join.h"

#include <gtest/gtest.h>

#include <map>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tests/dist/comm/job.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Variables = std::map<std::string, std::string>;

Job join_with(const Variables& variables) {
  return join(DeviceType::cpu, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string free_port() { return std::to_string(detail::Listener(Address{}).address().port); }

TEST(Join, IsAloneWithoutALauncher) {
  const Job job = join_with({});
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.size, 1);
  EXPECT_EQ(job.device, Device{});
  Tensor x = Tensor::full({3}, 2);
  job.communicator->all_reduce(x).wait();
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Join, ConnectsTheRanksOfEveryLauncher) {
  const std::vector<std::pair<const char*, const char*>> launchers = {
      {"TERN_RANK", "TERN_WORLD_SIZE"}, {"RANK", "WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank_name, size_name] : launchers) {
    SCOPED_TRACE(rank_name);
    const std::string port = free_port();
    const auto errors = on_ranks(2, [&, rank_name = rank_name, size_name = size_name](int rank) {
      set_thread_count(4);
      const Job job = join_with({{rank_name, std::to_string(rank)},
                                 {size_name, "2"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"MPI_LOCALNRANKS", "2"},
                                 {"TERN_MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", port},
                                 {"TERN_MASTER_PORT", port}});
      EXPECT_EQ(job.rank, rank);
      EXPECT_EQ(job.size, 2);
      EXPECT_EQ(thread_count(), 2) << "the ranks share the cores";
      Tensor x = Tensor::full({1}, rank + 1.0);
      job.communicator->all_reduce(x).wait();
      EXPECT_EQ(x.item(), 3);
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

TEST(Join, RefusesHalfOfALaunchersVariables) {
  EXPECT_EQ(message_of<InputError>([] { join_with({{"RANK", "1"}}); }), "RANK is set, expected WORLD_SIZE beside it");
  EXPECT_EQ(message_of<InputError>([] {
              join_with({{"OMPI_COMM_WORLD_SIZE", "2"}});
            }),
            "OMPI_COMM_WORLD_SIZE is set, expected OMPI_COMM_WORLD_RANK beside it");
}

}  // namespace
}  // namespace tern::test
