#include <gtest/gtest.h>

#include <atomic>
#include <sstream>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/tcp/handshake.h"
#include "tern/dist/comm/tcp/monitor.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

using detail::Connection;
using detail::ConnectionKind;
using detail::Frame;
using detail::FrameType;
using detail::Listener;
using detail::Socket;
using std::chrono::milliseconds;

const Deadlines kMemberDeadlines = {
    .heartbeat = milliseconds(50), .dead_after = milliseconds(500), .rendezvous = std::chrono::seconds(30)};

Clock::time_point soon() { return Clock::now() + std::chrono::seconds(20); }

/// A rank that holds the token and does nothing by itself. The test calls each of its steps.
class Puppet {
 public:
  Puppet(int rank, int size, const Address& master) : rank_(rank), size_(size), master_(master) {}

  /// Its listener would be for the ranks above it. None of them connects to a puppet.
  void join(const std::string& host = "puppet") { control_ = call(master_, ConnectionKind::control, host); }
  void beat() {
    std::string report = "1 0 0 -1 0 -1";
    for (int peer = 0; peer < size_; ++peer) report += " 0";
    say(FrameType::heartbeat, report);
  }
  void say(FrameType type, const std::string& text) {
    EXPECT_TRUE(write_control(control_, {.type = type, .source = static_cast<uint16_t>(rank_)}, text, soon()));
  }
  /// The next message of rank 0 that is not a heartbeat.
  std::string hear() {
    Frame frame;
    std::string text;
    do {
      while (!take_control(inbox_, control_.received, frame, text)) {
        std::byte byte;
        if (!control_.socket.read_all({&byte, 1}, soon())) return "";
        inbox_.push_back(byte);
      }
    } while (frame.type == FrameType::heartbeat);
    return text;
  }
  /// Connects to rank 0, or to another rank at its address.
  void connect_data(const Address& where) { data_.push_back(call(where, ConnectionKind::data, "puppet")); }
  /// The address of a rank, from the list of members, which begins with the job's name.
  static Address address_of(int rank, const std::string& members) {
    std::istringstream lines(members);
    std::string line;
    for (int i = 0; i <= rank + 1; ++i) std::getline(lines, line);
    Address address;
    uint32_t process = 0;
    std::istringstream(line) >> process >> address.host >> address.port;
    return address;
  }

 private:
  Connection call(const Address& where, ConnectionKind kind, const std::string& host) {
    std::string why;
    detail::Hello hello = detail::make_hello(kind, Wire::mac, 0, rank_, size_, 9);
    hello.host = {};
    host.copy(hello.host.data(), hello.host.size() - 1);
    const detail::Door door = {where == master_ ? 0 : 1, kJobToken};
    auto connection = detail::knock(detail::connect(where, soon(), why), hello, door, where, soon());
    EXPECT_TRUE(connection) << why;
    return connection ? std::move(*connection) : Connection{};
  }

  int rank_, size_;
  Address master_;
  Connection control_;
  std::vector<Connection> data_;
  std::vector<std::byte> inbox_;
};

/// Runs real ranks, each of which does `work` on its communicator. The last rank is a puppet. Returns what each rank
/// threw.
template <class Work, class Play>
std::vector<std::string> beside_puppet(int size, const Work& work, const Play& play) {
  Listener listener{Address{}};
  const Address master = listener.address();
  return on_ranks(size, [&](int rank) {
    if (rank == size - 1) {
      Puppet puppet(rank, size, master);
      play(puppet, master);
      return;
    }
    const TcpOptions options = {.rank = rank,
                                .size = size,
                                .master = master,
                                .token = kJobToken,
                                .wire = Wire::mac,
                                .deadlines = kMemberDeadlines};
    TransportCommunicator c(rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options));
    work(c);
  });
}

/// Rank 2 says goodbye, but its data connections stay open until the other ranks have ended.
std::vector<std::string> after_false_goodbye(const std::function<void(Communicator&)>& work) {
  std::atomic<int> ended = 0;
  const auto begin = Clock::now();
  auto errors = beside_puppet(
      3,
      [&](Communicator& c) {
        try {
          work(c);
        } catch (const PeerError&) {
          ++ended;
          throw;
        }
      },
      [&](Puppet& puppet, const Address& master) {
        puppet.join();
        const std::string members = puppet.hear();
        puppet.connect_data(master);
        puppet.connect_data(Puppet::address_of(1, members));
        puppet.say(FrameType::goodbye, "");
        while (ended < 2 && Clock::now() < begin + std::chrono::seconds(20))
          std::this_thread::sleep_for(milliseconds(5));
      });
  EXPECT_EQ(ended, 2);
  return errors;
}

TEST(Member, ThatLeavesAndKeepsItsConnectionsOpenIsMissed) {
  const std::pair<const char*, std::function<void(Communicator&)>> table[] = {
      {"all wait for it",
       [](Communicator& c) {
         Tensor x = Tensor::full({1000}, 1);
         c.all_reduce(x).wait();
       }},
      {"one has too much for it, the other waits for that one",
       [](Communicator& c) {
         Tensor x = Tensor::full({20'000'000}, 1);
         c.fan_out(x, 1).wait();
         if (c.rank() == 0) c.barrier().wait();
       }},
  };
  for (const auto& [what, work] : table) {
    SCOPED_TRACE(what);
    const auto begin = Clock::now();
    const auto errors = after_false_goodbye(work);
    EXPECT_LT(Clock::now() - begin, 15 * kMemberDeadlines.dead_after);
    EXPECT_TRUE(errors[0].starts_with("rank 2 (puppet, ")) << errors[0];
    EXPECT_TRUE(names(errors[0], "has left, and keeps rank ")) << errors[0];
    EXPECT_EQ(errors[0], errors[1]);
  }
}

TEST(Member, ThatIsSlowAtTheStartIsToldFromADeadOne) {
  std::atomic<bool> done = false;
  const auto errors = beside_puppet(
      3,
      [&](TransportCommunicator& c) {
        for (const auto end = soon(); !done && Clock::now() < end; std::this_thread::sleep_for(milliseconds(5)))
          c.transport().throw_if_failed();
      },
      [&](Puppet& puppet, const Address& master) {
        puppet.join();
        const std::string members = puppet.hear();
        puppet.connect_data(master);  // rank 0 has all its connections, and rank 1 waits
        for (const auto end = Clock::now() + 3 * kMemberDeadlines.dead_after; Clock::now() < end;) {
          puppet.beat();
          std::this_thread::sleep_for(kMemberDeadlines.heartbeat);
        }
        puppet.connect_data(Puppet::address_of(1, members));
        done = true;
      });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Member, ThatDiesAtTheStartIsNamedAtOnce) {
  const std::pair<bool, const char*> table[] = {{false, "closed its connection"}, {true, "sent nothing for 0.5 s"}};
  for (const auto& [stays, cause] : table) {
    Listener listener{Address{}};
    const Address master = listener.address();
    std::atomic<bool> ended = false;
    const auto begin = Clock::now();
    const auto errors = on_ranks(2, [&, waits = stays](int rank) {
      if (rank == 0) {
        const TcpOptions options = {
            .size = 3, .master = master, .token = kJobToken, .wire = Wire::mac, .deadlines = kMemberDeadlines};
        try {
          make_tcp(options, std::move(listener));
        } catch (...) {
          ended = true;
          throw;
        }
      } else {
        Puppet puppet(2, 3, master);
        puppet.join();
        while (waits && !ended && Clock::now() < soon()) std::this_thread::sleep_for(milliseconds(5));
      }
    });
    EXPECT_LT(Clock::now() - begin, kMemberDeadlines.rendezvous / 2);
    EXPECT_TRUE(errors[0].starts_with("rank 2 (puppet, ")) << errors[0];
    EXPECT_TRUE(names(errors[0], cause)) << errors[0];
  }
}

TEST(Member, ThatSendsEscapesReachesNoTerminal) {
  std::string heard;
  const auto errors = beside_puppet(
      2, [](Communicator& c) { c.barrier().wait(); },
      [&](Puppet& puppet, const Address& master) {
        puppet.join("\x1b[31mred\nrank 9");
        puppet.hear();
        puppet.connect_data(master);
        puppet.say(FrameType::report, "1 \x1b]0;title\x07 \xff\u009b2J it said \"no\\\"");
        heard = puppet.hear();
      });
  EXPECT_TRUE(errors[0].starts_with(R"(rank 1 (\x1b[31mred\nrank 9, process )")) << errors[0];
  EXPECT_TRUE(names(errors[0], R"(\x1b]0;title\x07 \xff\x9b2J it said "no\")")) << errors[0];
  EXPECT_EQ(heard, errors[0]) << "the same on all ranks";
}

TEST(Member, WhoseNumbersDoNotFitOrThatIsThereAlreadyIsTurnedAway) {
  const auto errors = beside_puppet(
      2, [](Communicator& c) { c.barrier().wait(); },
      [](Puppet& puppet, const Address& master) {
        const auto refusal = [&](int rank, int size) {
          try {
            Puppet(rank, size, master).join();
          } catch (const PeerError& error) {
            return std::string(error.what());
          }
          return std::string("it was let in");
        };
        EXPECT_TRUE(names(refusal(0, 2), "cannot join rank 0 of 2")) << refusal(0, 2);
        EXPECT_TRUE(names(refusal(2, 2), "cannot join rank 0 of 2")) << refusal(2, 2);
        EXPECT_TRUE(names(refusal(1, 3), "is one of 3 ranks, rank 0 one of 2")) << refusal(1, 3);
        puppet.join();
        EXPECT_TRUE(names(refusal(1, 2), "joins a second time")) << refusal(1, 2);
        puppet.connect_data(master);
      });
  EXPECT_TRUE(names(errors[0], "rank 1 (puppet, ")) << errors[0];
  EXPECT_TRUE(names(errors[0], "closed its connection")) << errors[0];
}

}  // namespace
}  // namespace tern::test
