#include <gtest/gtest.h>

#include <condition_variable>

#include "tern/dist/comm/failure.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

using std::chrono::milliseconds;

const Deadlines kFailureDeadlines = {
    .heartbeat = milliseconds(50), .dead_after = milliseconds(500), .operation = milliseconds(500)};

class Failures : public testing::TestWithParam<TransportKind> {};

/// Lets ranks wait for each other without the job under test.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (--count_ == 0) changed_.notify_all();
    changed_.wait(lock, [&] { return count_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_;
};

TEST_P(Failures, ARankThatLeavesEndsTheOthersWithOneCause) {
  const auto begin = Clock::now();
  const auto errors = with_communicators(GetParam().make(4, kFailureDeadlines), [](Communicator& c) {
    Tensor x = Tensor::full({100003}, 1);
    c.all_reduce(x).wait();
    if (c.rank() == 2) return;
    c.all_reduce(x).wait();
    ADD_FAILURE() << "rank " << c.rank() << " went on without rank 2";
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(errors[2], "");
  EXPECT_NE(errors[0].find("rank 2"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("all_reduce_sum 2"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[3], errors[0]);
}

TEST_P(Failures, ARankThatHangsIsToldFromASlowOne) {
  Latch ended(3);
  const auto errors = with_communicators(GetParam().make(3, kFailureDeadlines), [&](Communicator& c) {
    Tensor x = Tensor::full({10}, 1);
    c.all_reduce(x).wait();
    if (c.rank() == 1) {
      ended.arrive_and_wait();
      return;
    }
    try {
      c.all_reduce(x).wait();
    } catch (const PeerError&) {
      ended.arrive_and_wait();
      throw;
    }
  });
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("hangs"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[2], errors[0]);
}

TEST_P(Failures, ARankMayComputeForLongerThanTheDeadAreSilent) {
  constexpr int64_t kMany = 8'000'000;  // more than the sockets hold
  Deadlines deadlines = kFailureDeadlines;
  deadlines.operation = std::chrono::seconds(20);
  const auto errors = with_communicators(GetParam().make(2, deadlines), [](Communicator& c) {
    if (c.rank() == 1) std::this_thread::sleep_for(3 * kFailureDeadlines.dead_after);
    Tensor x = Tensor::full({kMany}, 1);
    c.all_reduce(x).wait();
    EXPECT_EQ(x.to_vector<float>()[kMany - 1], 2);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_P(Failures, RanksThatCallUnlikeOperationsAreToldSo) {
  const auto errors = with_communicators(GetParam().make(2, kFailureDeadlines), [](Communicator& c) {
    Tensor x = Tensor::full({c.rank() == 0 ? 10 : 12}, 1);
    c.all_reduce(x).wait();
  });
  for (const auto& error : errors) {
    EXPECT_NE(error.find("all_reduce_sum 1 of 10 f32"), std::string::npos) << error;
    EXPECT_NE(error.find("all_reduce_sum 1 of 12 f32"), std::string::npos) << error;
  }
  EXPECT_EQ(errors[0], errors[1]);
}

TEST_P(Failures, PoisonTheCommunicator) {
  with_communicators(GetParam().make(2, kFailureDeadlines), [](Communicator& c) {
    if (c.rank() == 1) return;
    Tensor x = Tensor::full({10}, 1);
    EXPECT_THROW(c.all_reduce(x).wait(), PeerError);
    EXPECT_THROW(c.broadcast(x, 0).wait(), PeerError);
    Tensor nothing = Tensor::empty({0});
    EXPECT_THROW(c.all_reduce(nothing).wait(), PeerError);
  });
}

/// Waits as a rank does whose tensors another library moves.
void wait_beside(Transport& job) {
  job.reach({.sequence = 7, .operation = Operation::broadcast});
  for (const auto begin = Clock::now(); Clock::now() < begin + std::chrono::seconds(10);) {
    job.throw_if_failed();
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST_P(Failures, OfAnotherLibraryAreToldToAll) {
  const Transports jobs = GetParam().make(3, kFailureDeadlines);
  const auto errors = on_ranks(3, [&](int rank) {
    if (rank == 1) jobs[1]->fail("broke its arm");
    wait_beside(*jobs[rank]);
  });
  EXPECT_TRUE(errors[0].starts_with("rank 1")) << errors[0];
  EXPECT_NE(errors[0].find("broke its arm"), std::string::npos) << errors[0];
  EXPECT_EQ(errors, std::vector<std::string>(3, errors[0]));
}

TEST_P(Failures, ARankThatLeavesAnotherLibrarysWaitIsMissed) {
  Transports jobs = GetParam().make(3, kFailureDeadlines);
  const auto errors = on_ranks(3, [&](int rank) { rank == 2 ? jobs[2].reset() : wait_beside(*jobs[rank]); });
  EXPECT_TRUE(errors[0].starts_with("rank 2")) << errors[0];
  EXPECT_NE(errors[0].find("has left"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
}

TEST_P(Failures, ARankThatEndsByItsOwnFaultTellsTheOthersWhy) {
  for (int faulty : {0, 1}) {
    const auto errors = with_communicators(GetParam().make(3, kFailureDeadlines), [&](Communicator& c) {
      if (c.rank() == faulty)
        c.abandon("out.tern: cannot be written: No space left on device");
      else
        c.barrier().wait();
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == faulty) continue;
      EXPECT_TRUE(errors[rank].starts_with("rank " + std::to_string(faulty) + " ")) << errors[rank];
      EXPECT_NE(errors[rank].find(" ended: out.tern: cannot be written: No space left on device"), std::string::npos)
          << errors[rank];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Failures, testing::ValuesIn(transport_kinds()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tern::test
