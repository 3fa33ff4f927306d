#include "tests/dist/comm/relay.h"

#include <gtest/gtest.h>

#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

/// Two ranks. Rank 1 reaches rank 0 through a relay. Connection 0 is for control, connection 1 for data.
struct RelayedJob {
  explicit RelayedJob(const Deadlines& deadlines) {
    on_ranks(2, [&](int rank) {
      const TcpOptions options = {
          .rank = rank, .size = 2, .master = relay.address(), .token = kJobToken, .deadlines = deadlines};
      transports[rank] = rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
    });
  }

  detail::Listener listener{Address{}};
  Relay relay{listener.address()};
  Transports transports{2};
};

TEST(Ledger, EqualsTheBytesThatARelayCounts) {
  RelayedJob job({.heartbeat = std::chrono::seconds(60), .dead_after = std::chrono::seconds(300)});
  constexpr int64_t kCount = 100003;
  Transport* ranks[] = {job.transports[0].get(), job.transports[1].get()};
  std::unique_ptr<Communicator> communicators[2];
  const auto errors = on_ranks(2, [&](int rank) {
    communicators[rank] = std::make_unique<TransportCommunicator>(std::move(job.transports[rank]));
    Tensor x = Tensor::full({kCount}, 1);
    communicators[rank]->all_reduce(x).wait();
    communicators[rank]->all_reduce(x, Reduction::max, Account::overhead).wait();
    communicators[rank]->barrier().wait();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));

  const auto total_sent = [](const Traffic& t) { return t.sent_payload + t.sent_overhead; };
  const auto total_received = [](const Traffic& t) { return t.received_payload + t.received_overhead; };
  const auto settled = [&] {
    return job.relay.bytes(Relay::forth) == total_sent(ranks[1]->traffic()) &&
           job.relay.bytes(Relay::forth) == total_received(ranks[0]->traffic()) &&
           job.relay.bytes(Relay::back) == total_sent(ranks[0]->traffic()) &&
           job.relay.bytes(Relay::back) == total_received(ranks[1]->traffic());
  };
  // The first heartbeat may still be on its way.
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  while (!settled() && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(settled()) << job.relay.bytes(Relay::forth) << " and " << total_sent(ranks[1]->traffic());
  for (Transport* rank : ranks) EXPECT_EQ(rank->traffic().sent_payload, 4u * kCount) << "2 parts of half the tensor";
}

constexpr auto kDeadAfter = std::chrono::milliseconds(500);

/// What both ranks throw after the relay causes `fault`.
std::vector<std::string> errors_after(Relay::Fault fault, size_t connection, Clock::duration dead_after = kDeadAfter) {
  RelayedJob job({.heartbeat = std::chrono::milliseconds(50), .dead_after = dead_after});
  const auto begin = Clock::now();
  const auto errors = with_communicators(std::move(job.transports), [&](Communicator& c) {
    Tensor x = Tensor::full({100003}, 1);
    c.all_reduce(x).wait();
    if (c.rank() == 0) job.relay.harm(fault, connection);
    for (;;) c.all_reduce(x).wait();
  });
  EXPECT_LT(Clock::now() - begin, 10 * dead_after);
  return errors;
}

void expect_one_cause(const std::vector<std::string>& errors, const char* cause) {
  EXPECT_NE(errors[0].find(cause), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(Relayed, AFlippedBitIsFound) {
  const auto errors = errors_after(Relay::Fault::flip, 1);
  EXPECT_EQ(errors[0].rfind("rank 1 (", 0), 0u) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(Relayed, AFlippedBitAmongSignsOfLifeIsFound) {
  const auto errors = errors_after(Relay::Fault::flip, 0);
  expect_one_cause(errors, "checksum is wrong");
}

TEST(Relayed, AResetDataConnectionEndsBoth) {
  expect_one_cause(errors_after(Relay::Fault::reset, 1), "closed its connection");
}

TEST(Relayed, ADataConnectionThatStallsBetweenLivingRanksIsNamed) {
  for (const auto fault : {Relay::Fault::freeze, Relay::Fault::drop}) {
    const auto errors = errors_after(fault, 1, 2 * kDeadAfter);
    EXPECT_TRUE(errors[0].starts_with("rank 1 (")) << errors[0];
    expect_one_cause(errors, "bytes to rank 0 that do not arrive: none came for 3 s");
  }
}

// The transfer takes longer than `dead_after`. But some bytes of the message always arrive.
TEST(Relayed, ASlowDataConnectionIsWaitedFor) {
  RelayedJob job({.heartbeat = std::chrono::milliseconds(50), .dead_after = kDeadAfter});
  job.relay.harm(Relay::Fault::slow, 1);
  const auto begin = Clock::now();
  const auto errors = with_communicators(std::move(job.transports), [&](Communicator& c) {
    Tensor x = Tensor::full({300'000}, 1);
    c.all_reduce(x).wait();
    EXPECT_EQ(x.data<float>()[299'999], 2.0f);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_GT(Clock::now() - begin, 3 * kDeadAfter);
}

TEST(Relayed, AStalledNetworkIsSilence) {
  const auto errors = errors_after(Relay::Fault::stall, 0);
  EXPECT_NE(errors[0].find("sent nothing for 0.5 s"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("sent nothing for 0.5 s"), std::string::npos) << errors[1];
}

}  // namespace
}  // namespace tern::test
