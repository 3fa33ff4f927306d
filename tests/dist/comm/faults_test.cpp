#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <regex>

#include "tern/core/random.h"
#include "tests/dist/comm/relay.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

using std::chrono::milliseconds;

constexpr int kJobRanks = 3;
constexpr int kSeedsPerTest = 10;
const Deadlines kFaultDeadlines = {
    .heartbeat = milliseconds(50), .dead_after = milliseconds(400), .operation = milliseconds(800)};

constexpr int kForEver = 1 << 30;

void train(Communicator& c, int steps) {
  for (int step = 0; step < steps; ++step) {
    Tensor x = Tensor::full({20011}, c.rank() + 1.0);
    c.all_reduce(x).wait();
    c.barrier().wait();  // the barrier sends in both directions between each pair of ranks
    ASSERT_EQ(x.data<float>()[step % 20011], 6.0f) << "a sum over ranks 1, 2, 3";
  }
}

/// Three ranks. Ranks 1 and 2 reach rank 0 through a relay. The relay gives their connections the
/// numbers 0 to 3, in the order of arrival. This order can differ between runs.
class Faults : public testing::TestWithParam<int> {
 protected:
  static uint32_t draw(int seed, uint64_t element, uint32_t below) {
    return RandomStream({.seed = static_cast<uint64_t>(seed), .purpose = Purpose::test}).below(element, below);
  }
  static void expect_named(const std::string& error) {
    EXPECT_TRUE(std::regex_search(error, std::regex("^rank [0-2] \\("))) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
};

TEST_P(Faults, OfTheNetworkEndNamedAndInTime) {
  constexpr std::array kFaults = {Relay::Fault::flip,     Relay::Fault::drop,  Relay::Fault::delay,
                                  Relay::Fault::truncate, Relay::Fault::reset, Relay::Fault::half_close,
                                  Relay::Fault::freeze,   Relay::Fault::stall};
  for (int seed = GetParam(); seed < GetParam() + kSeedsPerTest; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto fault = kFaults[draw(seed, 0, kFaults.size())];
    detail::Listener listener{Address{}};
    Relay relay{listener.address()};
    const auto begin = Clock::now();
    const auto errors = on_ranks(kJobRanks, [&](int rank) {
      const TcpOptions options = {
          .rank = rank, .size = kJobRanks, .master = relay.address(), .token = kJobToken, .deadlines = kFaultDeadlines};
      TransportCommunicator c(rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options));
      train(c, static_cast<int>(draw(seed, 1, 50)));
      if (rank == 0) relay.harm(fault, draw(seed, 2, 4), draw(seed, 3, 2) == 0 ? Relay::forth : Relay::back);
      train(c, fault == Relay::Fault::delay ? 50 : kForEver);
    });
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
    if (fault == Relay::Fault::delay) {
      EXPECT_EQ(errors, std::vector<std::string>(kJobRanks)) << "a late message harms nothing";
      continue;
    }
    // If a fault cuts off one rank, that rank may report one cause and the other ranks another cause.
    for (const auto& error : errors) expect_named(error);
    EXPECT_TRUE(errors[0] == errors[1] || errors[0] == errors[2] || errors[1] == errors[2]) << errors[0] << "\n"
                                                                                            << errors[1] << "\n"
                                                                                            << errors[2];
  }
}

TEST_P(Faults, OfAProcessEndNamedAndInTime) {
  for (int seed = GetParam(); seed < GetParam() + kSeedsPerTest; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const int signal = draw(seed, 4, 2) == 0 ? SIGKILL : SIGSTOP;
    detail::Listener listener{Address{}};
    TcpOptions options = {
        .size = kJobRanks, .master = listener.address(), .token = kJobToken, .deadlines = kFaultDeadlines};
    const pid_t child = ::fork();
    if (child == 0) {
      options.rank = 2;
      TransportCommunicator c(make_tcp(options));
      train(c, kForEver);
      ::_exit(0);
    }
    std::thread killer;
    const auto begin = Clock::now();
    const auto errors = on_ranks(2, [&](int rank) {
      TcpOptions mine = options;
      mine.rank = rank;
      TransportCommunicator c(rank == 0 ? make_tcp(mine, std::move(listener)) : make_tcp(mine));
      if (rank == 0) {
        killer = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(draw(seed, 5, 100'000)));
          ::kill(child, signal);
        });
      }
      train(c, kForEver);
    });
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
    killer.join();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(errors[0].rfind("rank 2 (", 0), 0u) << errors[0];
    EXPECT_EQ(errors[0], errors[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Faults, testing::Range(0, 50, kSeedsPerTest));

}  // namespace
}  // namespace tern::test
