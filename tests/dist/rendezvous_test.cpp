#include <gtest/gtest.h>

#include "tern/dist/peer_error.h"
#include "tern/dist/tcp/handshake.h"
#include "tests/dist/transports.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using detail::Gate;
using detail::Hello;
using detail::Listener;
using detail::Socket;
using std::chrono::milliseconds;

const JobToken kOther = "another token of that length";
const Deadlines kShort = {.handshake = milliseconds(500), .rendezvous = milliseconds(500)};

bool names(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// What the ranks of a job of two say, each set up by `change`.
std::vector<std::string> meet(const std::function<void(TcpOptions&)>& change) {
  Listener listener{Address{}};
  const Address master = listener.address();
  return on_ranks(2, [&](int rank) {
    TcpOptions options = {.rank = rank, .size = 2, .master = master, .token = kJobToken, .deadlines = kShort};
    change(options);
    rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
}

/// A caller that a gate, which knows kJobToken, serves on another thread for a while.
template <class Call>
std::string refusal_of(const Call& call) {
  Listener listener{Address{}};
  const Address address = listener.address();
  std::string refused;
  on_ranks(2, [&](int who) {
    if (who == 0) {
      Gate gate(listener, 0, 2, kJobToken, milliseconds(200));
      EXPECT_FALSE(gate.admit(Clock::now() + milliseconds(500)));
      refused = gate.refused();
    } else {
      std::string why;
      Socket socket = detail::connect(address, Clock::now() + std::chrono::seconds(5), why);
      call(socket);
    }
  });
  return refused;
}

Clock::time_point soon() { return Clock::now() + milliseconds(300); }

Hello hello() { return detail::make_hello(detail::Purpose::data, 0, 1, 2, 0); }

TEST(Rendezvous, ASharedTokenAdmits) {
  EXPECT_EQ(meet([](TcpOptions&) {}), std::vector<std::string>(2));
}

TEST(Rendezvous, AnotherTokenIsNamedOnBothSides) {
  const auto errors = meet([](TcpOptions& options) {
    if (options.rank == 1) options.token = kOther;
  });
  EXPECT_TRUE(names(errors[0], "rank 1 did not join rank 0 within 0.5 s")) << errors[0];
  EXPECT_TRUE(names(errors[0], "left at the proof of the job token")) << errors[0];
  EXPECT_TRUE(names(errors[1], "holds another job token than rank 1")) << errors[1];
}

TEST(Rendezvous, ACallerWhoSkipsTheProofIsTurnedAway) {
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      std::array<std::byte, 72> challenge;
                      const std::array<std::byte, 32> guess{};
                      const Hello mine = hello();
                      socket.write_all(std::as_bytes(std::span(&mine, 1)), soon());
                      socket.read_all(challenge, soon());
                      socket.write_all(guess, soon());
                      socket.read_all(challenge, soon());
                    }),
                    "claims to be rank 1 with another job token"));
}

TEST(Rendezvous, AnotherVersionIsNamed) {
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      Hello old = hello();
                      old.version = 99;
                      const auto error = message_of<PeerError>([&] { knock(socket, old, kJobToken, {}, soon()); });
                      EXPECT_NE(error, "");
                    }),
                    "speaks version 99 of the protocol"));
}

TEST(Rendezvous, HostileFirstBytesAreTurnedAway) {
  const auto refused = refusal_of([](Socket& socket) {
    std::vector<std::byte> noise(10000, std::byte{0x5a});
    socket.write_all(noise, soon());
  });
  EXPECT_TRUE(names(refused, "is no rank of a job of tern's")) << refused;
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      std::array<std::byte, 1> byte{};
                      socket.read_all(byte, Clock::now() + milliseconds(400));
                    }),
                    "did not prove itself in time"));
}

TEST(Rendezvous, SilentStrangersDoNotKeepRanksOut) {
  Listener listener{Address{}};
  const Address master = listener.address();
  std::string why;
  std::vector<Socket> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(detail::connect(master, soon(), why));
  const Deadlines deadlines = {.handshake = milliseconds(200), .rendezvous = std::chrono::seconds(20)};
  const auto errors = on_ranks(2, [&](int rank) {
    const TcpOptions options = {.rank = rank, .size = 2, .master = master, .token = kJobToken, .deadlines = deadlines};
    rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
  EXPECT_EQ(errors[0], "");
}

TEST(Rendezvous, RanksThatDoNotFitSayTheSame) {
  const auto sizes = meet([](TcpOptions& options) { options.size += options.rank; });
  EXPECT_TRUE(names(sizes[0], "is one of 3 ranks, rank 0 one of 2")) << sizes[0];
  EXPECT_EQ(sizes[0], sizes[1]);
  const auto epochs = meet([](TcpOptions& options) { options.epoch = static_cast<uint32_t>(options.rank); });
  EXPECT_TRUE(names(epochs[0], "is in epoch 1 of the job, rank 0 in epoch 0")) << epochs[0];
  EXPECT_EQ(epochs[0], epochs[1]);
}

TEST(Rendezvous, AnAbsentRankIsNamed) {
  const auto errors =
      on_ranks(1, [](int) { make_tcp({.rank = 0, .size = 3, .token = kJobToken, .deadlines = kShort}); });
  EXPECT_EQ(errors[0], "rank 1, 2 did not join rank 0 within 0.5 s");
  Listener unused{Address{}};
  const Address nobody = unused.address();
  { const Listener gone = std::move(unused); }
  const auto alone = message_of<PeerError>(
      [&] { make_tcp({.rank = 1, .size = 2, .master = nobody, .token = kJobToken, .deadlines = kShort}); });
  EXPECT_TRUE(names(alone, "rank 1: rank 0 does not answer at " + to_string(nobody))) << alone;
}

TEST(Rendezvous, ABusyPortIsNamed) {
  const Listener listener{Address{}};
  const std::string error = message_of<InputError>(
      [&] { make_tcp({.rank = 0, .size = 2, .master = listener.address(), .token = kJobToken}); });
  EXPECT_TRUE(names(error, to_string(listener.address()) + ": cannot listen there: Address already in use")) << error;
}

TEST(Rendezvous, NoJobIsWithoutAToken) {
  for (const char* host : {"127.0.0.1", "0.0.0.0"})
    for (int rank : {0, 1}) {
      const auto error = message_of<InputError>([&] { make_tcp({.rank = rank, .size = 2, .master = {host, 29400}}); });
      EXPECT_TRUE(names(error, "TERN_TOKEN_FILE")) << error;
    }
}

TEST(Address, ReadsWhatItWrites) {
  for (const char* text : {"127.0.0.1:29400", "[::1]:0", "node-1:65535"})
    EXPECT_EQ(to_string(parse_address(text)), text);
  for (const char* text : {"", "host", "host:", ":1", "host:65536", "host:1x", "::1:5", "host:-1"})
    EXPECT_NE(message_of<InputError>([&] { parse_address(text); }), "") << text;
}

}  // namespace
}  // namespace tern::test
