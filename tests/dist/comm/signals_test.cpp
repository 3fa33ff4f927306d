#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

using std::chrono::milliseconds;

/// Ranks 0 and 1 are threads of this process, and rank 2 is its own process. Returns what ranks 0 and 1 throw after
/// rank 2 has sent itself a signal.
std::vector<std::string> errors_after(int signal) {
  detail::Listener listener{Address{}};
  TcpOptions options = {.size = 3, .master = listener.address(), .token = kJobToken};
  options.deadlines = {.heartbeat = milliseconds(50), .dead_after = milliseconds(500)};
  const auto train = [&](Communicator& c, int steps) {
    Tensor x = Tensor::full({1000}, 1);
    for (int step = 0; step < steps; ++step) c.all_reduce(x).wait();
  };
  const pid_t child = ::fork();
  if (child == 0) {
    options.rank = 2;
    TransportCommunicator c(make_tcp(options));
    train(c, 3);
    ::raise(signal);
    ::_exit(0);
  }
  const auto begin = Clock::now();
  const auto errors = on_ranks(2, [&](int rank) {
    TcpOptions mine = options;
    mine.rank = rank;
    TransportCommunicator c(rank == 0 ? make_tcp(mine, std::move(listener)) : make_tcp(mine));
    train(c, 1000000);
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(errors[0].rfind("rank 2 (", 0), 0u) << errors[0];
  EXPECT_NE(errors[0].find("process " + std::to_string(child)), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
  return errors;
}

TEST(Signals, AKilledRankIsNamedByAll) {
  EXPECT_NE(errors_after(SIGKILL)[0].find("closed its connection"), std::string::npos);
}

TEST(Signals, AStoppedRankIsNamedByAllOnceItHasBeenSilent) {
  EXPECT_NE(errors_after(SIGSTOP)[0].find("sent nothing for 0.5 s"), std::string::npos);
}

}  // namespace
}  // namespace tern::test
