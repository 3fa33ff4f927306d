#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tern/dist/socket.h"

namespace tern::test {

/// Stands between a caller and a listener, passes bytes on, counts them and does harm when told to. One thread.
class Relay {
 public:
  enum class Fault { none, flip, reset, stall };
  enum Direction { forth, back };  ///< from the caller to the listener, and the other way

  explicit Relay(const Address& target) : target_(target), address_(listener_.address()), thread_([this] { run(); }) {}
  ~Relay() {
    ending_ = true;
    thread_.join();
  }

  const Address& address() const { return address_; }
  uint64_t bytes(Direction direction) const { return bytes_[direction]; }
  /// From now on, to what the caller sends on connection `number`, in order of arrival; `stall` to all of them.
  void harm(Fault fault, size_t number) {
    harmed_ = number;
    fault_ = fault;
  }

 private:
  struct Pair {
    detail::Socket ends[2];  // the caller's, the listener's
  };

  void run() {
    while (!ending_) {
      std::vector<pollfd> entries = {{listener_.descriptor(), POLLIN, 0}};
      for (const auto& pair : pairs_)
        for (const auto& end : pair.ends) entries.push_back({end.descriptor(), POLLIN, 0});
      ::poll(entries.data(), entries.size(), 10);
      if (fault_ == Fault::stall) continue;
      for (size_t i = 1; i < entries.size(); ++i)
        if (entries[i].revents != 0) pass((i - 1) / 2, (i - 1) % 2 == 0 ? forth : back);
      if (entries[0].revents == 0) continue;
      std::string why;
      detail::Socket caller = listener_.accept();
      pairs_.push_back({{std::move(caller), detail::connect(target_, Clock::now() + std::chrono::seconds(5), why)}});
    }
  }

  void pass(size_t number, Direction direction) {
    Pair& pair = pairs_[number];
    char buffer[65536];
    const ssize_t got = ::recv(pair.ends[direction].descriptor(), buffer, sizeof buffer, 0);
    if (got < 0) return;
    const bool harmed = direction == forth && number == harmed_;
    if (harmed && fault_ == Fault::flip && got > 0) buffer[got - 1] ^= 4;
    if (got == 0 || (harmed && fault_ == Fault::reset)) {
      pair = {};
      return;
    }
    bytes_[direction] += static_cast<uint64_t>(got);
    const int to = pair.ends[1 - direction].descriptor();
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t n = ::send(to, buffer + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (n > 0) sent += n;
      if (n >= 0) continue;
      if (errno != EAGAIN || ending_) return;
      detail::wait_for(to, POLLOUT, Clock::now() + std::chrono::milliseconds(10));
    }
  }

  Address target_;
  detail::Listener listener_{Address{}};
  Address address_;
  std::vector<Pair> pairs_;
  std::atomic<uint64_t> bytes_[2] = {0, 0};
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<size_t> harmed_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tern::test
