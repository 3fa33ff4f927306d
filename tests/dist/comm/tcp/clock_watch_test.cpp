#include "tern/dist/comm/tcp/clock_watch.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two ranks whose clocks differ, and the network between them.
struct Pair {
  Clock::duration ahead;  ///< the peer's clock minus this rank's
  Clock::time_point now = Clock::time_point(seconds(1000));
  ClockWatch own = {}, peer = {};

  Clock::time_point peers_now() const { return now + ahead; }
  /// The peer's heartbeat goes first; then, after `pause`, this rank's.
  void exchange(Clock::duration to_peer, Clock::duration to_own, Clock::duration pause) {
    const std::string first = peer.beat(peers_now());
    now += to_own;
    EXPECT_EQ(own.hear(first + "rest", now), "rest");
    now += pause;
    const std::string second = own.beat(now);
    now += to_peer;
    EXPECT_EQ(peer.hear(second, peers_now()), "");
    now += pause;
  }
  Clock::duration wrong() const { return own.offset(now)->offset - ahead; }
};

TEST(ClockWatch, KnowsNothingBeforeAHeartbeatHasGoneBothWays) {
  Pair pair = {.ahead = seconds(7)};
  EXPECT_FALSE(pair.own.offset(pair.now));
  pair.exchange(microseconds(50), microseconds(50), milliseconds(10));
  EXPECT_FALSE(pair.own.offset(pair.now)) << "the peer's heartbeat did not know this rank's yet";
  pair.exchange(microseconds(50), microseconds(50), milliseconds(10));
  EXPECT_TRUE(pair.own.offset(pair.now));
}

TEST(ClockWatch, FindsTheOffsetWithinTheErrorThatItStates) {
  for (const auto ahead : {Clock::duration(seconds(-40)), Clock::duration(0), Clock::duration(milliseconds(3))})
    for (const auto& [out, back] : {std::pair(50, 50), std::pair(900, 10), std::pair(0, 400)}) {
      Pair pair = {.ahead = ahead};
      for (int i = 0; i < 3; ++i) pair.exchange(microseconds(out), microseconds(back), milliseconds(500));
      const ClockOffset found = *pair.own.offset(pair.now);
      EXPECT_LE(std::chrono::abs(pair.wrong()), found.error) << out << " " << back;
      EXPECT_LE(found.error, microseconds((out + back) / 2) + milliseconds(1)) << "half of the way, and drift";
      EXPECT_EQ(pair.wrong(), microseconds(out - back) / 2) << "half of the difference of the ways";
    }
}

TEST(ClockWatch, KeepsTheBestHeartbeatUntilDriftMakesItWorse) {
  Pair pair = {.ahead = seconds(1)};
  for (int i = 0; i < 2; ++i) pair.exchange(microseconds(10), microseconds(10), milliseconds(1));
  const Clock::duration best = pair.own.offset(pair.now)->error;
  pair.exchange(milliseconds(9), milliseconds(1), milliseconds(1));
  pair.exchange(milliseconds(9), milliseconds(1), milliseconds(1));
  EXPECT_LT(pair.own.offset(pair.now)->error, best + microseconds(10)) << "a slow heartbeat does not count";
  EXPECT_EQ(pair.wrong(), Clock::duration(0));
  pair.now += seconds(1000);  // 100 ms of drift
  EXPECT_GT(pair.own.offset(pair.now)->error, milliseconds(100));
  for (int i = 0; i < 2; ++i) pair.exchange(milliseconds(9), milliseconds(1), milliseconds(1));
  EXPECT_LT(pair.own.offset(pair.now)->error, milliseconds(6));
}

TEST(ClockWatch, RefusesATextWithoutTimes) {
  ClockWatch watch;
  for (const char* text : {"", "1 2", "1 2 3", "1 2 x ", "-1 0 0 ", "1 2 2305843009213693953 ",
                           "99999999999999999999 0 0 ", "1 2305843009213693952 1 ", "1 1 2 "})
    EXPECT_THROW(watch.hear(text, Clock::now()), Error) << text;
}

}  // namespace
}  // namespace tern::detail
