#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/tcp/handshake.h"
#include "tests/dist/comm/transports.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using detail::Gate;
using detail::Hello;
using detail::Listener;
using detail::Socket;
using std::chrono::milliseconds;

const JobToken kOther = "another token of that length";
const Deadlines kRendezvousDeadlines = {.handshake = milliseconds(500), .rendezvous = milliseconds(500)};

constexpr Wire kWires[] = {Wire::plain, Wire::mac, Wire::tls};

/// What the two ranks of a job throw. `change` changes the options of each rank.
std::vector<std::string> meet(Wire wire, const std::function<void(TcpOptions&)>& change) {
  Listener listener{Address{}};
  const Address master = listener.address();
  return on_ranks(2, [&](int rank) {
    TcpOptions options = {
        .rank = rank, .size = 2, .master = master, .token = kJobToken, .wire = wire, .deadlines = kRendezvousDeadlines};
    change(options);
    rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
}

/// What the gate of rank 0, which knows kJobToken, reports about a caller. It runs on another thread for 0.5 s.
template <class Call>
std::string refusal_of(const Call& call, Wire wire = Wire::mac) {
  Listener listener{Address{}};
  const Address address = listener.address();
  std::string refused;
  on_ranks(2, [&](int who) {
    if (who == 0) {
      Gate gate(listener, {0, kJobToken}, wire, 68, milliseconds(200));
      EXPECT_FALSE(gate.admit([](const Hello&) { return ""; }, Clock::now() + milliseconds(500)));
      refused = gate.refusals();
    } else {
      std::string why;
      Socket socket = detail::connect(address, Clock::now() + std::chrono::seconds(5), why);
      call(socket);
    }
  });
  return refused;
}

Clock::time_point in_a_moment() { return Clock::now() + milliseconds(300); }

Hello hello(Wire wire = Wire::mac) { return detail::make_hello(detail::ConnectionKind::data, wire, 0, 1, 2, 0); }

TEST(Rendezvous, ASharedTokenAdmits) {
  for (const Wire wire : kWires) EXPECT_EQ(meet(wire, [](TcpOptions&) {}), std::vector<std::string>(2));
}

TEST(Rendezvous, AnotherTokenIsNamedOnBothSides) {
  for (const Wire wire : kWires) {
    const auto errors = meet(wire, [](TcpOptions& options) {
      if (options.rank == 1) options.token = kOther;
    });
    EXPECT_TRUE(names(errors[0], "rank 1 did not join rank 0 within 0.5 s")) << errors[0];
    const char* seen = wire == Wire::tls ? "holds another job token" : "left at the proof of the job token";
    EXPECT_TRUE(names(errors[0], seen)) << errors[0];
    EXPECT_TRUE(names(errors[1], "holds another job token")) << errors[1];
  }
}

TEST(Rendezvous, AnotherWireIsNamed) {
  for (const Wire zero : kWires)
    for (const Wire one : kWires) {
      if (zero == one) continue;
      const auto errors = meet(zero, [&](TcpOptions& options) {
        if (options.rank == 1) options.wire = one;
      });
      const std::string own = "has --wire " + to_string(one) + ", rank 0 has --wire " + to_string(zero);
      if (one == Wire::tls)
        EXPECT_TRUE(names(errors[0], "speaks TLS, this rank has --wire " + to_string(zero))) << errors[0];
      else
        EXPECT_TRUE(names(errors[0], zero == Wire::tls ? "does not speak TLS 1.3" : own)) << errors[0];
      const std::string told = one == Wire::tls    ? "has another --wire than tls"
                               : zero == Wire::tls ? "has --wire tls, rank 1 has --wire " + to_string(one)
                                                   : own;
      EXPECT_TRUE(names(errors[1], told)) << errors[1];
    }
}

TEST(Rendezvous, APlainWireStaysOnThisMachine) {
  const auto error = message_of<InputError>([] {
    make_tcp({.rank = 1, .size = 2, .master = {"203.0.113.7", 29400}, .token = kJobToken, .wire = Wire::plain});
  });
  EXPECT_TRUE(names(error, "203.0.113.7:29400: found an address that other machines can reach")) << error;
}

/// This process's listening TCP sockets that take IPv4 connections at any address.
int64_t listeners_everywhere() {
  std::set<std::string> own;
  std::error_code closed;  // between the listing and the reading
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    own.insert(std::filesystem::read_symlink(entry.path(), closed).string());
  std::ifstream table("/proc/net/tcp");
  int64_t count = 0;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string local, state, skipped, inode;
    words >> skipped >> local >> skipped >> state;
    for (int i = 0; i < 6; ++i) words >> inode;
    count += local.starts_with("00000000:") && state == "0A" && own.contains("socket:[" + inode + "]");
  }
  return count;
}

// A machine can take its own name for 127.x.y.z. Then its ranks call rank 0 there, but other machines cannot use such
// an address. 0.0.0.0 is a name of this kind: calls to it come from 127.0.0.1.
TEST(Rendezvous, RanksOnRank0sMachineCanBeReachedByItsName) {
  Listener listener{Address{"0.0.0.0", 0}};
  const Address master = listener.address();
  ASSERT_EQ(listeners_everywhere(), 1);
  bool listens = false;
  const auto errors = on_ranks(4, [&](int rank) {
    if (rank == 3) {  // says that it listens at port 1
      std::string why;
      const auto soon = Clock::now() + std::chrono::seconds(5);
      const Hello own = detail::make_hello(detail::ConnectionKind::control, Wire::mac, 0, 1, 3, 1);
      const auto in = detail::knock(detail::connect(master, soon, why), own, {0, kJobToken}, master, soon);
      EXPECT_TRUE(in);
      for (const auto end = Clock::now() + milliseconds(2000); Clock::now() < end;) {
        listens = listens || listeners_everywhere() == 2;
        std::this_thread::sleep_for(milliseconds(10));
      }
      return;
    }
    if (rank == 1) return;
    TcpOptions options = {.rank = rank, .size = 3, .master = master, .token = kJobToken, .wire = Wire::mac};
    options.deadlines = kRendezvousDeadlines;
    options.deadlines.rendezvous = milliseconds(1500);  // all three must have called by then
    rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
  });
  EXPECT_TRUE(names(errors[2], "rank 1 does not answer at 0.0.0.0:1")) << errors[2];
  EXPECT_TRUE(listens) << "rank 2 listens at all addresses";
}

TEST(Rendezvous, AHostThatIsNotKnownYetIsAskedForAgain) {
  const auto error = message_of<PeerError>([] {
    make_tcp({.rank = 1,
              .size = 2,
              .master = {"tern-0.invalid", 29400},
              .token = kJobToken,
              .wire = Wire::tls,
              .deadlines = kRendezvousDeadlines});
  });
  EXPECT_TRUE(names(error, "rank 0 does not answer at tern-0.invalid:29400: the host is not known")) << error;
}

// So a man in the middle cannot connect a rank to another rank than the one that it calls.
TEST(Rendezvous, ACallerMeantForAnotherRankIsTurnedAway) {
  for (const Wire wire : kWires) {
    std::string told;
    const auto refused = refusal_of(
        [&](Socket& socket) {
          told = message_of<PeerError>([&] {
            detail::knock(std::move(socket), hello(wire), {7, kJobToken}, {}, in_a_moment());
          });
        },
        wire);
    EXPECT_TRUE(names(refused, "calls rank 7, found rank 0")) << refused;
    EXPECT_TRUE(names(told, "calls rank 7, found rank 0")) << told;
  }
}

TEST(Rendezvous, ACallerWhoSkipsTheProofIsTurnedAway) {
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      std::array<std::byte, 72> challenge;
                      const std::array<std::byte, 32> guess{};
                      const Hello mine = hello();
                      socket.write_all(std::as_bytes(std::span(&mine, 1)), in_a_moment());
                      socket.read_all(challenge, in_a_moment());
                      socket.write_all(guess, in_a_moment());
                      socket.read_all(challenge, in_a_moment());
                    }),
                    "claims to be rank 1 with another job token"));
}

TEST(Rendezvous, AnotherVersionIsNamed) {
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      Hello old = hello();
                      old.version = 99;
                      EXPECT_FALSE(detail::knock(std::move(socket), old, {0, kJobToken}, {}, in_a_moment()));
                    }),
                    "speaks version 99 of the protocol"));
}

TEST(Rendezvous, HostileFirstBytesAreTurnedAway) {
  const auto refused = refusal_of([](Socket& socket) {
    std::vector<std::byte> noise(10000, std::byte{0x5a});
    socket.write_all(noise, in_a_moment());
  });
  EXPECT_TRUE(names(refused, "did not answer as a tern rank")) << refused;
  const auto in_tls = refusal_of(
      [](Socket& socket) {
        std::vector<std::byte> noise(10000, std::byte{0x5a});
        socket.write_all(noise, in_a_moment());
      },
      Wire::tls);
  EXPECT_TRUE(names(in_tls, "does not speak TLS 1.3")) << in_tls;
  EXPECT_TRUE(names(refusal_of([](Socket& socket) {
                      std::array<std::byte, 1> byte{};
                      socket.read_all(byte, Clock::now() + milliseconds(400));
                    }),
                    "did not prove itself in time"));
}

/// Keeps many idle connections to one address open, on its own thread. If the other side closes one, it opens a new one
/// at once.
class Strangers {
 public:
  Strangers(const Address& target, size_t count) : target_(target), sockets_(count), thread_([this] { run(); }) {}
  ~Strangers() {
    ending_ = true;
    thread_.join();
  }
  /// Waits until each has been connected once.
  void await_all() const {
    while (opened_ < sockets_.size()) std::this_thread::sleep_for(milliseconds(1));
  }
  size_t opened() const { return opened_; }

 private:
  void run() {
    std::vector<pollfd> entries(sockets_.size());
    while (!ending_) {
      for (size_t i = 0; i < sockets_.size() && !ending_; ++i) {
        if (sockets_[i].open() && entries[i].revents == 0) continue;
        std::string why;
        sockets_[i] = detail::connect(target_, Clock::now() + milliseconds(100), why);
        opened_ += sockets_[i].open() ? 1 : 0;
        entries[i] = {sockets_[i].descriptor(), POLLIN, 0};
      }
      ::poll(entries.data(), entries.size(), 10);
    }
  }

  Address target_;
  std::vector<Socket> sockets_;
  std::atomic<size_t> opened_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;  // the last member, because it uses all others
};

TEST(Rendezvous, SilentStrangersDoNotKeepRanksOut) {
  constexpr int kRanks = 4;
  constexpr size_t kStrangers = 500;
  for (const Wire wire : {Wire::mac, Wire::tls}) {
    Listener listener{Address{}};
    const Address master = listener.address();
    const Strangers strangers(master, kStrangers);
    strangers.await_all();
    const Deadlines deadlines = {.rendezvous = std::chrono::seconds(20)};
    const auto errors = on_ranks(kRanks, [&](int rank) {
      const TcpOptions options = {
          .rank = rank, .size = kRanks, .master = master, .token = kJobToken, .wire = wire, .deadlines = deadlines};
      rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options);
    });
    EXPECT_EQ(errors, std::vector<std::string>(kRanks)) << to_string(wire);
  }
}

TEST(Rendezvous, TheOldestStrangerIsDroppedAndNoneIsWaitedFor) {
  constexpr size_t kPlaces = 4;
  Listener listener{Address{}};
  std::string why;
  std::vector<Socket> strangers;
  for (size_t i = 0; i < 2 * kPlaces; ++i) strangers.push_back(detail::connect(listener.address(), in_a_moment(), why));
  Gate gate(listener, {0, kJobToken}, Wire::mac, kPlaces, std::chrono::minutes(1));
  EXPECT_FALSE(gate.admit([](const Hello&) { return ""; }, in_a_moment()));
  for (size_t i = 0; i < strangers.size(); ++i) {
    std::array<std::byte, 1> byte;
    const iovec part = {byte.data(), 1};
    EXPECT_EQ(strangers[i].read({&part, 1}).ended.empty(), i >= kPlaces) << i;
  }
  EXPECT_EQ(gate.refusals(), "127.0.0.1 did not prove itself before others needed its place (4 times)");
}

TEST(Rendezvous, ARankThatDoesNotFitIsTurnedAwayAndTold) {
  const auto sizes = meet(Wire::tls, [](TcpOptions& options) { options.size += options.rank; });
  EXPECT_TRUE(names(sizes[1], "is one of 3 ranks, rank 0 one of 2")) << sizes[1];
  EXPECT_TRUE(sizes[1].starts_with("rank 1 (")) << sizes[1];
  EXPECT_EQ(sizes[0], "rank 1 did not join rank 0 within 0.5 s; turned away: " + sizes[1]);
  const auto epochs = meet(Wire::tls, [](TcpOptions& options) { options.epoch = static_cast<uint32_t>(options.rank); });
  EXPECT_TRUE(names(epochs[1], "is in epoch 1 of the job, rank 0 in epoch 0")) << epochs[1];
  EXPECT_EQ(epochs[0], "rank 1 did not join rank 0 within 0.5 s; turned away: " + epochs[1]);
}

TEST(Rendezvous, ALeftOverOfAnEarlierEpochHarmsNothing) {
  Listener listener{Address{}};
  TcpOptions options = {.size = 2, .master = listener.address(), .token = kJobToken, .epoch = 1};
  std::string left_over;
  const auto errors = on_ranks(2, [&](int rank) {
    TcpOptions mine = options;
    mine.rank = rank;
    if (rank == 0) {
      make_tcp(mine, std::move(listener));
      return;
    }
    TcpOptions old = mine;
    old.epoch = 0;
    left_over = message_of<PeerError>([&] { make_tcp(old); });
    make_tcp(mine);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_TRUE(names(left_over, "is in epoch 0 of the job, rank 0 in epoch 1")) << left_over;
}

TEST(Rendezvous, WhoIsWaitedForIsNamedMeanwhile) {
  Deadlines deadlines = kRendezvousDeadlines;
  deadlines.note = milliseconds(100);
  std::vector<std::string> notes;
  const auto note = [&](const std::string& text) { notes.push_back(text); };
  const TcpOptions options = {.size = 3, .token = kJobToken, .deadlines = deadlines, .note = note};
  EXPECT_NE(message_of<PeerError>([&] { make_tcp(options); }), "");
  ASSERT_FALSE(notes.empty());
  EXPECT_TRUE(notes[0].starts_with("waiting for rank 1, 2 to join: 0.1")) << notes[0];
  EXPECT_TRUE(notes[0].ends_with(" of 0.5 s")) << notes[0];
}

/// Gives this process its own host name. Returns true if this succeeds.
bool take_name(const std::string& name) {
  return (::unshare(CLONE_NEWUTS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0) &&
         ::sethostname(name.c_str(), name.size()) == 0;
}

TEST(Rendezvous, AsManyRanksAsThereMayBeOnMachinesWithLongNames) {
  constexpr int kNotAllowed = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;  // all connections have both ends in this process
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 5000 || !take_name(std::string(63, 'n')))
      ::_exit(kNotAllowed);
    try {
      make_tcp_job(kMaxRanks, {});
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed)
    GTEST_SKIP() << "this user may not name a machine, or open 5,000 files";
  EXPECT_EQ(status, 0);
}

TEST(Rendezvous, AnAbsentRankIsNamed) {
  const auto errors =
      on_ranks(1, [](int) { make_tcp({.rank = 0, .size = 3, .token = kJobToken, .deadlines = kRendezvousDeadlines}); });
  EXPECT_EQ(errors[0], "rank 1, 2 did not join rank 0 within 0.5 s");
  Listener unused{Address{}};
  const Address nobody = unused.address();
  { const Listener gone = std::move(unused); }
  Deadlines deadlines = kRendezvousDeadlines;
  deadlines.note = milliseconds(50);
  std::vector<std::string> notes;
  const auto alone = message_of<PeerError>([&] {
    make_tcp({.rank = 1,
              .size = 2,
              .master = nobody,
              .token = kJobToken,
              .deadlines = deadlines,
              .note = [&](const std::string& text) { notes.push_back(text); }});
  });
  const std::string why = "answer at " + to_string(nobody);
  EXPECT_EQ(alone, "rank 1: rank 0 does not " + why + ": Connection refused");
  EXPECT_FALSE(notes.empty());
  for (const std::string& text : notes) {
    EXPECT_TRUE(text.starts_with("waiting for rank 0 to " + why)) << text;
    EXPECT_TRUE(text.ends_with("; Connection refused")) << text;
  }
}

// Any server may have the port of --master.
TEST(Rendezvous, AServerThatSendsNothingIsNamed) {
  const Listener silent{Address{}};
  const auto error = message_of<PeerError>([&] {
    make_tcp({.rank = 1, .size = 2, .master = silent.address(), .token = kJobToken, .deadlines = kRendezvousDeadlines});
  });
  EXPECT_TRUE(names(error, "rank 0 does not answer at ")) << error;
  EXPECT_TRUE(names(error, ": it takes the connection and sends nothing")) << error;
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
