#include "tern/dist/comm/work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
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

// Its thread does not wake for operations that are waited for at once.
TEST(WorkQueue, GoesOnAfterManyThatWereWaitedFor) {
  WorkQueue queue;
  for (int i = 0; i < 1000; ++i) queue.add([] {}).wait();
  std::promise<void> begun;
  const Work work = queue.add([&] { begun.set_value(); });
  EXPECT_EQ(begun.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  work.wait();
}

TEST(WorkQueue, TellsEveryWaiterWhatWentWrong) {
  WorkQueue queue;
  const Work work = queue.add([] { throw std::runtime_error("no"); });
  EXPECT_THROW(work.wait(), std::runtime_error);
  EXPECT_THROW(work.wait(), std::runtime_error);
  queue.add([] {}).wait();
}

TEST(WorkQueue, EachWaitJoinsInItsOwnThreadAfterTheOperation) {
  int ended = 0;
  std::vector<std::thread::id> joined;
  std::optional<WorkQueue> queue(std::in_place);
  const Work work = queue->add([&] { ++ended; },
                               [&] {
                                 EXPECT_EQ(ended, 1);
                                 joined.push_back(std::this_thread::get_id());
                               });
  work.wait();
  queue.reset();
  std::thread([&] { work.wait(); }).join();
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0], std::this_thread::get_id());
  EXPECT_NE(joined[1], std::this_thread::get_id());
}

TEST(WorkQueue, TellsWhatTheOperationThrewBeforeWhatItsJoinThrows) {
  WorkQueue queue;
  const auto refuse = [] { throw std::logic_error("joined"); };
  EXPECT_THROW(queue.add([] { throw std::runtime_error("no"); }, refuse).wait(), std::runtime_error);
  EXPECT_THROW(queue.add([] {}, refuse).wait(), std::logic_error);
}

TEST(WorkQueue, BeginsOnItsOwnThread) {
  for (int i = 0; i < 200; ++i) {
    std::thread::id begun;
    {
      WorkQueue queue([&] { begun = std::this_thread::get_id(); });
      queue.add([] {}).wait();
    }
    EXPECT_NE(begun, std::thread::id());
    EXPECT_NE(begun, std::this_thread::get_id());
  }
}

TEST(WorkQueue, EndsWhileAnotherThreadDoesItsLastOperation) {
  std::promise<void> begin;
  const auto begun = begin.get_future().share();
  auto queue = std::make_unique<WorkQueue>([&] { begun.wait(); });  // so the waiter runs the work itself
  const Work work = queue->add([&] {
    begin.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  std::thread waiter([&] { work.wait(); });
  begun.wait();
  queue.reset();
  waiter.join();
  EXPECT_TRUE(work.done());
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
