#include "tern/dist/comm/tcp/link_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

constexpr auto kLimit = std::chrono::milliseconds(20);

TEST(LinkReport, ReadsItsOwnWriting) {
  LinkCounts counts(3);
  counts.sent(0, 5);
  counts.sent(2, 7'000'000'000);
  counts.sent(2, 1);
  counts.received(0, 9);
  counts.wait_for(0);
  counts.wait_to_send(2);
  const LinkReport report = parse_link_report(format(counts.report()), 3);
  EXPECT_EQ(report.awaited, 0);
  EXPECT_EQ(report.received, 9u);
  EXPECT_EQ(report.taker, 2);
  EXPECT_EQ(report.sent, (std::vector<uint64_t>{5, 0, 7'000'000'001}));
}

TEST(LinkReport, RefusesWhatIsNone) {
  for (const char* text : {"", "-1", "-1 0 -1 0 0", "-1 0 -1 0 0 0 0", "3 0 -1 0 0 0", "-2 0 -1 0 0 0", "0 0 3 0 0 0",
                           "0 x -1 0 0 0", "0 0 -1 0 0 -1"})
    EXPECT_THROW(parse_link_report(text, 3), Error) << text;
}

/// Rank 1 waits for rank 0. Rank 0 has sent it `sent` bytes, and `received` of them have arrived.
std::optional<Fault> look(LinkWatch& watch, uint64_t sent, uint64_t received) {
  watch.note(0, {.sent = {0, sent}});
  watch.note(1, {.awaited = 0, .received = received, .sent = {0, 0}});
  return watch.find_lost(kLimit);
}

TEST(LinkWatch, FindsBytesThatDoNotArrive) {
  LinkWatch watch(2);
  EXPECT_FALSE(look(watch, 100, 40));
  std::this_thread::sleep_for(2 * kLimit);
  const auto fault = look(watch, 100, 40);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->rank, 0);
  EXPECT_EQ(fault->cause, "sent 60 bytes to rank 1 that do not arrive: none came for 0.02 s");
}

TEST(LinkWatch, WaitsForARankThatComputes) {
  LinkWatch watch(2);
  for (int i = 0; i < 3; ++i, std::this_thread::sleep_for(2 * kLimit)) EXPECT_FALSE(look(watch, 40, 40));
  EXPECT_FALSE(look(watch, 100, 40)) << "sent just now";
}

TEST(LinkWatch, WaitsForASlowLink) {
  LinkWatch watch(2);
  for (uint64_t i = 0; i < 3; ++i, std::this_thread::sleep_for(2 * kLimit)) EXPECT_FALSE(look(watch, 100, 40 + i));
}

TEST(LinkWatch, LeavesAloneWhatNobodyAwaits) {
  LinkWatch watch(2);
  for (int i = 0; i < 3; ++i, std::this_thread::sleep_for(2 * kLimit)) {
    watch.note(0, {.sent = {0, 100}});
    watch.note(1, {.sent = {0, 0}});
    EXPECT_FALSE(watch.find_lost(kLimit));
  }
}

TEST(LinkWatch, FindsWhoWaitsForARankThatLeft) {
  LinkWatch watch(3);
  const auto report = [&watch](const LinkReport& told) {
    watch.note(0, told);
    return watch.find_waiting(2, kLimit);
  };
  for (uint64_t i = 0; i < 3; ++i, std::this_thread::sleep_for(2 * kLimit)) {
    EXPECT_FALSE(report({.awaited = 2, .received = i, .sent = {0, 0, 9}})) << "something arrives";
    EXPECT_FALSE(watch.find_waiting(1, kLimit));
  }
  EXPECT_EQ(report({.awaited = 2, .received = 2, .sent = {0, 0, 9}}), 0);
  for (uint64_t i = 0; i < 3; ++i, std::this_thread::sleep_for(2 * kLimit))
    EXPECT_FALSE(report({.taker = 2, .sent = {0, 0, i}})) << "something is taken";
  EXPECT_EQ(report({.taker = 2, .sent = {0, 9, 2}}), 0);
  EXPECT_FALSE(report({.sent = {0, 9, 2}})) << "it does not wait";
}

}  // namespace
}  // namespace tern::detail
