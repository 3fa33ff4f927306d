#include "tests/dist/comm/relay.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tern/core/crc32c.h"
#include "tern/dist/comm/tcp/frame.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

/// Two ranks. Rank 1 reaches rank 0 through a relay. Connection 0 is for control, connection 1 for data.
struct RelayedJob {
  RelayedJob(Wire wire, const Deadlines& deadlines) {
    on_ranks(2, [&](int rank) {
      const TcpOptions options = {
          .rank = rank, .size = 2, .master = relay.address(), .token = kJobToken, .wire = wire, .deadlines = deadlines};
      transports[rank] = rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
    });
  }

  detail::Listener listener{Address{}};
  Relay relay{listener.address()};
  Transports transports{2};
};

class Relayed : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, Relayed, testing::Values(Wire::plain, Wire::mac, Wire::tls),
                         [](const auto& param) { return to_string(param.param); });

TEST_P(Relayed, TheLedgerEqualsTheBytesThatTheRelayCounts) {
  RelayedJob job(GetParam(), {.heartbeat = std::chrono::seconds(60), .dead_after = std::chrono::seconds(300)});
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
std::vector<std::string> errors_after(Wire wire, Relay::Fault fault, size_t connection,
                                      Clock::duration dead_after = kDeadAfter) {
  RelayedJob job(wire, {.heartbeat = std::chrono::milliseconds(50), .dead_after = dead_after});
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

TEST_P(Relayed, AFlippedBitIsFound) {
  const auto errors = errors_after(GetParam(), Relay::Fault::flip, 1);
  EXPECT_EQ(errors[0].rfind("rank 1 (", 0), 0u) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST_P(Relayed, AFlippedBitAmongSignsOfLifeIsFound) {
  const auto errors = errors_after(GetParam(), Relay::Fault::flip, 0);
  if (GetParam() != Wire::tls) return expect_one_cause(errors, "sent a control frame that was changed on the way");
  // After a wrong record, OpenSSL sends nothing more on this connection. So each rank settles the cause alone.
  EXPECT_TRUE(names(errors[0], "sent bytes that were changed on the way")) << errors[0];
  EXPECT_TRUE(names(errors[1], "changed on the way")) << errors[1];
}

TEST_P(Relayed, RepeatedBytesAreFound) {
  const auto errors = errors_after(GetParam(), Relay::Fault::repeat, 1);
  EXPECT_EQ(errors[0].rfind("rank 1 (", 0), 0u) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST_P(Relayed, AResetDataConnectionEndsBoth) {
  expect_one_cause(errors_after(GetParam(), Relay::Fault::reset, 1), "closed its connection");
}

TEST_P(Relayed, ADataConnectionThatStallsBetweenLivingRanksIsNamed) {
  for (const auto fault : {Relay::Fault::freeze, Relay::Fault::drop}) {
    const auto errors = errors_after(GetParam(), fault, 1, 2 * kDeadAfter);
    EXPECT_TRUE(errors[0].starts_with("rank 1 (")) << errors[0];
    expect_one_cause(errors, "bytes to rank 0 that do not arrive: none came for 3 s");
  }
}

// The transfer takes longer than `dead_after`. But some bytes of the message always arrive.
TEST_P(Relayed, ASlowDataConnectionIsWaitedFor) {
  RelayedJob job(GetParam(), {.heartbeat = std::chrono::milliseconds(50), .dead_after = kDeadAfter});
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

// They come after twice `dead_after`. Rank 0 has said goodbye long before.
TEST_P(Relayed, TheLastBytesOfARankThatLeftAreWaitedFor) {
  RelayedJob job(GetParam(), {.heartbeat = std::chrono::milliseconds(50), .dead_after = kDeadAfter});
  job.relay.set_delay(2 * kDeadAfter);
  const auto errors = with_communicators(std::move(job.transports), [&](Communicator& c) {
    if (c.rank() == 0) job.relay.harm(Relay::Fault::delay, 1, Relay::back);
    Tensor x = Tensor::full({1000}, c.rank() == 0 ? 1 : 0);
    c.broadcast(x, 0).wait();
    EXPECT_EQ(x.data<float>()[999], 1.0f);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_P(Relayed, AStalledNetworkIsSilence) {
  const auto errors = errors_after(GetParam(), Relay::Fault::stall, 0);
  EXPECT_NE(errors[0].find("sent nothing for 0.5 s"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("sent nothing for 0.5 s"), std::string::npos) << errors[1];
}

/// A gradient that chance does not make twice.
Tensor secret_gradient() {
  const Tensor gradient = Tensor::empty({4000});
  const RandomStream random({.seed = 7});
  for (int64_t i = 0; i < gradient.numel(); ++i) gradient.data<float>()[i] = random.uniform(static_cast<uint64_t>(i));
  return gradient;
}

TEST_P(Relayed, OnlyTlsHidesGradients) {
  RelayedJob job(GetParam(), {.heartbeat = std::chrono::seconds(60), .dead_after = std::chrono::seconds(300)});
  const Tensor gradient = secret_gradient();
  const auto errors = with_communicators(std::move(job.transports), [&](Communicator& c) {
    Tensor x = gradient.clone();
    c.broadcast(x, 1).wait();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  const std::string record = job.relay.record();
  EXPECT_GT(record.size(), 16000u);
  int seen = 0;
  for (int64_t i = 0; i + 4 <= gradient.numel(); i += 4)
    seen += record.find(std::string(reinterpret_cast<const char*>(gradient.data<float>() + i), 16)) != record.npos;
  EXPECT_EQ(seen, GetParam() == Wire::tls ? 0 : 1000);
}

/// Changes a value of a frame whose payload lies in these bytes, and computes its checksum again, as only a frame of a
/// plain wire allows.
bool forge_value(std::span<char> bytes) {
  using detail::Frame;
  constexpr size_t kLengthAt = 32, kTagAt = 48, kPayload = 16000;
  for (size_t at = 0; at + Frame::kBytes + kPayload <= bytes.size(); ++at) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at + kLengthAt, sizeof length);
    if (std::memcmp(bytes.data() + at, "TERN", 4) != 0 || length != kPayload) continue;
    const float forged = 1e6f;
    std::memcpy(bytes.data() + at + Frame::kBytes, &forged, sizeof forged);
    std::memset(bytes.data() + at + kTagAt, 0, Frame::kBytes - kTagAt);
    const uint32_t crc = crc32c(std::as_bytes(bytes.subspan(at, Frame::kBytes + kPayload)));
    std::memcpy(bytes.data() + at + kTagAt, &crc, sizeof crc);
    return true;
  }
  return false;
}

// This is why a plain wire stays on one machine.
TEST_P(Relayed, AChangeWithItsOwnChecksumPassesOnlyAPlainWire) {
  RelayedJob job(GetParam(), {.heartbeat = std::chrono::milliseconds(50), .dead_after = kDeadAfter});
  std::atomic<bool> forged = false;
  job.relay.set_forge([&](std::span<char> bytes) {
    if (GetParam() != Wire::tls) return forged = forge_value(bytes);
    bytes[bytes.size() / 2] ^= 1;  // there is no frame to see
    return forged = true;
  });
  job.relay.harm(Relay::Fault::change, 1);
  const Tensor gradient = secret_gradient();
  float got = 0;
  const auto errors = with_communicators(std::move(job.transports), [&](Communicator& c) {
    Tensor x = gradient.clone();
    c.broadcast(x, 1).wait();
    if (c.rank() == 0) got = x.data<float>()[0];
    c.barrier().wait();
  });
  EXPECT_TRUE(forged);
  if (GetParam() == Wire::plain) {
    EXPECT_EQ(errors, std::vector<std::string>(2));
    EXPECT_EQ(got, 1e6f);
    return;
  }
  EXPECT_EQ(got, 0) << "the forged tensor was delivered";
  EXPECT_EQ(errors[0].rfind("rank 1 (", 0), 0u) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

// A man in the middle changes one bit at any place of the handshake or of the job. Nobody gets a wrong tensor.
TEST_P(Relayed, AnyChangedBitEndsTheJobOrKeepsARankOut) {
  if (GetParam() == Wire::plain) GTEST_SKIP() << "a checksum is no protection against an attacker";
  const RandomStream random({.seed = 8});
  int changes = 0;
  for (uint32_t trial = 0; trial < 24; ++trial) {
    detail::Listener listener{Address{}};
    Relay relay(listener.address());
    const size_t place = random.below(4 * trial, trial % 2 == 0 ? 200 : 20000);
    size_t passed = 0;
    std::atomic<bool> changed = false;
    relay.set_forge([&](std::span<char> bytes) {
      passed += bytes.size();
      if (place >= passed) return false;
      bytes[bytes.size() - (passed - place)] ^= static_cast<char>(1 << random.below(4 * trial + 1, 8));
      return changed = true;
    });
    relay.harm(Relay::Fault::change, 1, random.below(4 * trial + 2, 2) == 0 ? Relay::forth : Relay::back);
    const auto errors = on_ranks(2, [&](int rank) {
      const TcpOptions options = {.rank = rank,
                                  .size = 2,
                                  .master = relay.address(),
                                  .token = kJobToken,
                                  .wire = GetParam(),
                                  .deadlines = {.heartbeat = std::chrono::milliseconds(50),
                                                .dead_after = std::chrono::milliseconds(300),
                                                .handshake = std::chrono::milliseconds(300),
                                                .rendezvous = std::chrono::milliseconds(600)}};
      TransportCommunicator c(rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options));
      for (int i = 0; i < 5; ++i) {
        Tensor x = Tensor::full({4000}, 1);
        c.all_reduce(x).wait();
        for (const float value : x.span<float>()) ASSERT_EQ(value, 2.0f);
      }
    });
    if (!changed) continue;
    ++changes;
    // Early bytes are of the handshake. The rank is turned away then, and comes back with another connection.
    EXPECT_TRUE(!errors[0].empty() || !errors[1].empty() || place < 1000) << "trial " << trial << ", byte " << place;
  }
  EXPECT_GE(changes, 16);
}

}  // namespace
}  // namespace tern::test
