#include "tern/trainer/rank/team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/in_process.h"
#include "tests/dist/comm/job.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

TEST(Team, HearsOfALostRankWithoutAMessage) {
  const auto errors = with_communicators(make_in_process(2), [](Communicator& c) {
    const trainer::Team team(&c);
    if (c.rank() == 1) return c.abandon("out of luck");
    std::string failure;
    for (int i = 0; i < 2000 && failure.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      try {
        team.check_job();
      } catch (const PeerError& error) {
        failure = error.what();
      }
    }
    EXPECT_NE(failure.find("out of luck"), std::string::npos) << failure;
    EXPECT_EQ(message_of<PeerError>([&] { team.sum({1}); }), failure);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(Team, OfOneRankHasNoJobThatCanFail) { EXPECT_NO_THROW(trainer::Team(nullptr).check_job()); }

}  // namespace
}  // namespace tern::test
