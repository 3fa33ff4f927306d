#include "tern/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tests/support/process.h"

namespace tern {
namespace {

/// Sets the thread count, and restores the previous one at its end.
class Threads {
 public:
  explicit Threads(int threads) : previous_(thread_count()) { set_thread_count(threads); }
  ~Threads() { set_thread_count(previous_); }

 private:
  int previous_;
};

using Ranges = std::set<std::pair<int64_t, int64_t>>;

Ranges ranges_of(int64_t begin, int64_t end, int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    std::lock_guard lock(mutex);
    ranges.emplace(first, last);
  });
  return ranges;
}

TEST(ParallelFor, VisitsEveryElementOnce) {
  for (int threads : {1, 2, 3, 7}) {
    Threads guard(threads);
    for (int64_t count : {0, 1, 2, 5, 100, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& visit : visits) ASSERT_EQ(visit, 1) << count << " elements, " << threads << " threads";
    }
  }
}

TEST(ParallelFor, CutsByRangeGrainAndThreadsAlone) {
  Threads guard(3);
  EXPECT_EQ(ranges_of(10, 20, 1), (Ranges{{10, 13}, {13, 16}, {16, 20}}));
  EXPECT_EQ(ranges_of(0, 10, 5), (Ranges{{0, 5}, {5, 10}}));
  EXPECT_EQ(ranges_of(0, 10, 6), (Ranges{{0, 10}})) << "no part below the grain";
  EXPECT_EQ(ranges_of(4, 4, 1), Ranges{});
}

TEST(ParallelFor, RethrowsWhatABodyThrows) {
  Threads guard(2);
  const auto throwing = [](int64_t first, int64_t) { check(first == 0, "element ", first); };
  try {
    parallel_for(0, 10, 1, throwing);
    FAIL() << "the exception was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "element 5");
  }
}

TEST(ParallelFor, RunsNestedCallsInTheCallingThread) {
  Threads guard(2);
  std::atomic<int> inner_ranges = 0;
  parallel_for(0, 2, 1, [&](int64_t, int64_t) { parallel_for(0, 100, 1, [&](int64_t, int64_t) { ++inner_ranges; }); });
  EXPECT_EQ(inner_ranges, 2) << "one range per outer part";
}

TEST(ParallelFor, CountsThreadsForTheCallingThreadAlone) {
  Threads guard(3);
  std::thread([] { set_thread_count(5); }).join();
  EXPECT_EQ(thread_count(), 3);
}

/// Runs loops for more than two seconds, with OpenMP's own waiting.
[[noreturn]] void loop_for_long() {
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  set_thread_count(2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2300);
  while (std::chrono::steady_clock::now() < end) parallel_for(0, 2, 1, [](int64_t, int64_t) {});
  std::_Exit(0);
}

// Under qemu, the kernel refuses programs for the emulated processor, unless somebody has registered qemu with it.
bool can_start_itself() { return Process({"/proc/self/exe", "--gtest_list_tests"}).wait().code == 0; }

TEST(ParallelFor, SaysOnceThatThreadsSpin) {
  if (!can_start_itself()) GTEST_SKIP() << "an emulated program cannot start itself, as this test does";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(loop_for_long(), testing::ExitedWithCode(0), "^note: OpenMP's threads spin [^\n]*PASSIVE.\n$");
}

TEST(ParallelFor, NeedsAThread) { EXPECT_THROW(set_thread_count(0), Error); }

}  // namespace
}  // namespace tern
