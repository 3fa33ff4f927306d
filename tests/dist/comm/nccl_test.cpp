#include "tests/dist/comm/nccl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <latch>

#include "tern/dist/comm/failure.h"
#include "tern/dist/methods/averaging.h"
#include "tern/kernels/elementwise.h"
#include "tests/dist/comm/transports.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

const Deadlines kNcclDeadlines = {.heartbeat = std::chrono::milliseconds(100),
                                  .dead_after = std::chrono::seconds(1),
                                  .operation = std::chrono::milliseconds(1500)};

Device own_device(const Communicator& c) { return {DeviceType::cuda, c.rank()}; }

Tensor ones(const Communicator& c, int64_t count) { return Tensor::full({count}, 1, {.device = own_device(c)}); }

/// What the device has in `x` after all that was issued.
std::vector<float> values(const Communicator& c, const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  c.confirm();
  return values;
}

void sum_ones(Communicator& c, int64_t count) {
  Tensor x = ones(c, count);
  c.all_reduce(x).wait();
  EXPECT_EQ(values(c, x), std::vector<float>(count, static_cast<float>(c.size())));
}

using State = OperationRecord::State;
State last_state(const Communicator& c) { return c.flight_record().operations.back().state; }

template <int kRanks>
class NcclOf : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_nccl(kRanks); !missing.empty()) GTEST_SKIP() << missing;
  }
};
using NcclCudaOne = NcclOf<1>;
using NcclCudaTwo = NcclOf<2>;
using NcclCudaThree = NcclOf<3>;

// If this build has NCCL, it loads, with or without a driver.
TEST(Nccl, TellsItsVersionOrWhatIsMissing) {
  try {
    EXPECT_TRUE(nccl_version().starts_with("2."));
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("NCCL: ")) << error.what();
  }
}

TEST_F(NcclCudaOne, OneRankPerDevice) {
  auto transports = make_in_process(3);
  const auto errors = on_ranks(3, [&](int rank) {
    make_nccl(std::move(transports[rank]), {.device = {DeviceType::cuda, 0}});
  });
  EXPECT_EQ(errors, std::vector<std::string>(
                        3, "NCCL: ranks 0 and 1 are both on one GPU (cuda:0), expected a GPU for each rank"));
}

TEST_F(NcclCudaOne, RefusesAnIdThatAnybodyKnows) {
  ::setenv("NCCL_COMM_ID", "127.0.0.1:1", 1);
  const auto errors = with_nccl(make_in_process(1), {}, [](Communicator&) {});
  ::unsetenv("NCCL_COMM_ID");
  EXPECT_TRUE(errors[0].starts_with("NCCL_COMM_ID is set")) << errors[0];
}

TEST_F(NcclCudaOne, RefusesToWaitWithoutADeadline) {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  const auto errors = with_nccl(make_in_process(1), {}, [](Communicator&) {});
  ::unsetenv("NCCL_COMM_BLOCKING");
  EXPECT_TRUE(errors[0].starts_with("NCCL_COMM_BLOCKING is 1; unset it")) << errors[0];
}

TEST_F(NcclCudaOne, AnErrorOfOurOwnAbortsIt) {
  const auto begin = Clock::now();
  const auto errors = with_nccl(make_in_process(1), {}, [](Communicator& c) {
    sum_ones(c, 1000);
    throw Error("out of luck");
  });
  EXPECT_EQ(errors[0], "out of luck");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
}

/// The means of a tensor of 1000 elements, one for each codec.
std::vector<std::vector<float>> means(Communicator& c, Device device) {
  std::vector<std::vector<float>> all;
  for (const char* codec : {"none", "ternary", "qsgd:bits=4,bucket=64,code=fixed", "ternary:pack=5trit",
                            "ternary:pack=entropy", "qsgd:bits=4,bucket=64,code=entropy"}) {
    Averaging averaging(c, {{"w", 1000}}, {.codec = codec});
    averaging.begin(7);
    std::vector<float> gradient;
    for (int i = 0; i < 1000; ++i)
      gradient.push_back(static_cast<float>(i % 37 - 18) * static_cast<float>(c.rank() + 1));
    averaging.give(0, Tensor::from<float>({1000}, gradient).to(device));
    all.push_back(averaging.finish()[0].to_vector<float>());
  }
  return all;
}

TEST_F(NcclCudaTwo, MeansAreThoseOfTheCpuAndItMovesAllOfThem) {
  std::vector<std::vector<float>> expected[2], found[2];
  const auto on_cpu = [&](Communicator& c) { expected[c.rank()] = means(c, {}); };
  EXPECT_EQ(with_communicators(make_in_process(2), on_cpu), std::vector<std::string>(2));

  Transports transports = make_in_process(2);
  const Transport* const beside[] = {transports[0].get(), transports[1].get()};
  const auto by_nccl = [&](Communicator& c) {
    found[c.rank()] = means(c, {DeviceType::cuda, c.rank()});
    EXPECT_EQ(beside[c.rank()]->traffic().sent_payload, 0u);
    EXPECT_GT(c.traffic().sent_payload, 0u);
  };
  EXPECT_EQ(with_nccl(std::move(transports), {}, by_nccl), std::vector<std::string>(2));
  for (int rank : {0, 1}) EXPECT_EQ(found[rank], expected[0]);
}

TEST_F(NcclCudaTwo, CpuTensorsGoBesideIt) {
  const auto errors = with_nccl(make_in_process(2), {}, [](Communicator& c) {
    Tensor device = ones(c, 5), host = Tensor::full({5}, c.rank() + 1);
    const Work first = c.all_reduce(device), second = c.all_reduce(host);
    second.wait();
    first.wait();
    EXPECT_EQ(host.to_vector<float>(), std::vector<float>(5, 3));
    EXPECT_EQ(device.to_vector<float>(), std::vector<float>(5, 2));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// Rank 1 calls only after rank 0 has gone on.
TEST_F(NcclCudaTwo, AWaitOrdersTheDeviceAndNotTheCpu) {
  std::latch waited(1);
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    sum_ones(c, 1000);  // the ranks compare their first operation of a kind, so it does wait
    Tensor x = ones(c, 1000);
    if (c.rank() == 1) {
      waited.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const Traffic before = c.traffic();
    c.all_reduce(x).wait();
    EXPECT_EQ((c.traffic() - before).sent_payload, 4000u);
    if (c.rank() == 0) {
      EXPECT_EQ(last_state(c), State::running);
      waited.count_down();
    }
    kernels::scale(x, 3, x);
    EXPECT_EQ(values(c, x), std::vector<float>(1000, 6));
    while (last_state(c) == State::running) std::this_thread::yield();
    EXPECT_EQ(last_state(c), State::done);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_F(NcclCudaTwo, AnOperationKeepsItsTensorsUntilItIsDoneOrOrdered) {
  for (const bool waits : {false, true}) {
    SCOPED_TRACE(waits);
    std::latch dropped(1);
    const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
      sum_ones(c, 1000);
      if (c.rank() == 1) {
        dropped.wait();
        return sum_ones(c, 1000);
      }
      const auto in_use = [&] { return device_backend(own_device(c)).statistics().in_use; };
      while (last_state(c) == State::running) std::this_thread::yield();
      const int64_t before = in_use();
      Tensor x = ones(c, 1000);
      const int64_t with_x = in_use();
      {
        const Work work = c.all_reduce(x);
        while (!work.done()) std::this_thread::yield();
        if (waits) work.wait();
      }
      x = {};
      // The queue drops the task a moment later.
      const auto limit = Clock::now() + std::chrono::milliseconds(waits ? 5000 : 50);
      while (in_use() != before && Clock::now() < limit) std::this_thread::yield();
      EXPECT_EQ(in_use(), waits ? before : with_x);
      dropped.count_down();
      while (last_state(c) == State::running) std::this_thread::yield();
      EXPECT_EQ(in_use(), before);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

TEST_F(NcclCudaTwo, ItsEndWaitsForWhatIsUnderWay) {
  Tensor sums[2];
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    sum_ones(c, 1000);
    sums[c.rank()] = ones(c, 1000);
    if (c.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    c.all_reduce(sums[c.rank()]);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  for (const Tensor& sum : sums) EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(1000, 2));
}

/// Runs `body` on every transport, and checks what each rank throws.
template <class Body, class Check>
void expect_failure(int ranks, const Body& body, const Check& check) {
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    check(with_nccl(kind.make(ranks, kNcclDeadlines), kNcclDeadlines, body));
  }
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(NcclCudaTwo, ARankWithAnotherOperationIsNamed) {
  const auto body = [](Communicator& c) { sum_ones(c, 100 + c.rank()); };
  expect_failure(2, body, [](const auto& errors) {
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(holds(errors[0], "all_reduce_sum 3 of 100 f32")) << errors[0];
    EXPECT_TRUE(holds(errors[0], "all_reduce_sum 3 of 101 f32")) << errors[0];
  });
}

TEST_F(NcclCudaTwo, PartsOfUnlikeLengthAreNamed) {
  const auto body = [](Communicator& c) {
    Tensor y = ones(c, 7);
    c.shift(ones(c, c.rank() == 0 ? 7 : 8), y).wait();
    values(c, y);
  };
  expect_failure(2, body, [](const auto& errors) {
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(errors[0].starts_with("rank 0")) << errors[0];
    EXPECT_TRUE(holds(errors[0], "expects 7 elements from rank 1, which sends 8 in shift 3")) << errors[0];
  });
}

TEST_F(NcclCudaTwo, ARankThatDoesNotComeIsNamedByTheDeadline) {
  const auto body = [](Communicator& c) {
    sum_ones(c, 3);
    if (c.rank() == 1) std::this_thread::sleep_for(3 * kNcclDeadlines.operation);
    sum_ones(c, 3);
  };
  expect_failure(2, body, [](const auto& errors) {
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(errors[0].starts_with("rank 1")) << errors[0];
    EXPECT_TRUE(holds(errors[0], "hangs: it lives, but has stood at operation 3")) << errors[0];
  });
}

// The device goes on with wrong numbers, and nobody uses them.
TEST_F(NcclCudaTwo, AFailureAfterTheWaitIsNamedByWhateverComesNext) {
  const auto body = [](Communicator& c) {
    sum_ones(c, 3);
    while (c.rank() == 1 && c.state().failure.empty()) std::this_thread::yield();
    Tensor x = ones(c, 3);
    const Work work = c.all_reduce(x);
    if (c.rank() == 1) return work.wait();
    work.wait();
    x.to_vector<float>();  // it comes when NCCL is aborted
    const std::string cause = message_of<PeerError>([&] { c.confirm(); });
    EXPECT_EQ(last_state(c), State::failed);
    EXPECT_EQ(c.state().failure, cause);
    EXPECT_EQ(message_of<PeerError>([&] { work.wait(); }), cause);
    EXPECT_EQ(message_of<PeerError>([&] { c.all_reduce(x).wait(); }), cause);
    throw Error(cause);
  };
  expect_failure(2, body, [](const auto& errors) {
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(errors[0].starts_with("rank 1")) << errors[0];
    EXPECT_TRUE(holds(errors[0], "hangs: it lives, but has stood at operation 3")) << errors[0];
  });
}

TEST_F(NcclCudaThree, ARankThatLeavesEndsTheOthersWaits) {
  const auto body = [](Communicator& c) {
    sum_ones(c, 3);
    if (c.rank() == 2) throw Error("out of luck");
    sum_ones(c, 3);
  };
  expect_failure(3, body, [](const auto& errors) {
    EXPECT_EQ(errors[2], "out of luck");
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(errors[0].starts_with("rank 2")) << errors[0];
    EXPECT_TRUE(holds(errors[0], "has left")) << errors[0];
  });
}

TEST_F(NcclCudaTwo, AFailurePoisonsTheCommunicator) {
  const auto body = [](Communicator& c) {
    const std::string first = message_of<PeerError>([&] { sum_ones(c, 3 + c.rank()); });
    EXPECT_EQ(message_of<PeerError>([&] { sum_ones(c, 3); }), first);
    throw Error(first);
  };
  expect_failure(2, body, [](const auto& errors) {
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(holds(errors[0], "all_reduce_sum 3 of")) << errors[0];
  });
}

}  // namespace
}  // namespace tern::test
