#include "tern/dist/work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

namespace tern {
namespace {

TEST(WorkQueue, RunsOneAfterTheOtherHoweverManyThreadsWait) {
  constexpr int kOperations = 2000;
  WorkQueue queue;
  std::vector<int> order;
  std::atomic<int> running = 0;
  std::vector<Work> works;
  for (int i = 0; i < kOperations; ++i)
    works.push_back(queue.add([&, i] {
      EXPECT_EQ(running++, 0);
      order.push_back(i);
      --running;
    }));
  std::vector<std::thread> waiters;
  for (int first = 0; first < 3; ++first)
    waiters.emplace_back([&, first] {
      for (int i = first; i < kOperations; i += 3) works[i].wait();
    });
  for (std::thread& waiter : waiters) waiter.join();
  ASSERT_EQ(order.size(), kOperations);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WorkQueue, GoesOnWhileNobodyWaits) {
  WorkQueue queue;
  std::promise<void> begun;
  const Work work = queue.add([&] { begun.set_value(); });
  begun.get_future().wait();
  work.wait();
  EXPECT_TRUE(work.done());
}

TEST(WorkQueue, TellsEveryWaiterWhatWentWrong) {
  WorkQueue queue;
  const Work work = queue.add([] { throw std::runtime_error("no"); });
  EXPECT_THROW(work.wait(), std::runtime_error);
  EXPECT_THROW(work.wait(), std::runtime_error);
  queue.add([] {}).wait();
}

TEST(WorkQueue, EndsWithWhatWasAsked) {
  int done = 0;
  {
    WorkQueue queue;
    for (int i = 0; i < 100; ++i) queue.add([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace tern
