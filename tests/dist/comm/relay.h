#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tern/dist/comm/socket.h"

namespace tern::test {

/// Stands between a caller and a listener. It passes bytes on and counts them. A test can let it damage a connection.
/// It uses one thread.
class Relay {
 public:
  enum Direction { forth, back };  // from the caller to the listener, and from the listener to the caller
  enum class Fault {
    none,
    flip,        // flips one bit, once
    repeat,      // passes a buffer twice, once
    change,      // lets `forge` change a buffer, until it says that it did
    drop,        // loses all bytes of this direction
    delay,       // holds this direction once, for 0.2 s or what `set_delay` says
    slow,        // passes 64 KiB per 0.1 s from now on
    truncate,    // passes half a buffer, then ends the connection
    reset,       // ends the connection
    half_close,  // ends this direction; the other continues
    freeze,      // passes nothing more in this direction
    stall        // passes nothing more on any connection
  };

  explicit Relay(const Address& target) : target_(target), address_(listener_.address()), thread_([this] { run(); }) {}
  ~Relay() {
    ending_ = true;
    thread_.join();
  }

  const Address& address() const { return address_; }
  uint64_t bytes(Direction direction) const { return bytes_[direction]; }
  /// All bytes that passed so far, of all connections.
  std::string record() {
    const std::lock_guard lock(recording_);
    return record_;
  }
  /// For Fault::change, set before `harm`. Returns whether it changed the bytes.
  using Forge = std::function<bool(std::span<char>)>;
  void set_forge(Forge forge) { forge_ = std::move(forge); }
  void set_delay(Clock::duration delay) { delay_ = delay; }
  /// From now on, damages one direction of connection `number`. Connections are numbered in the order of arrival.
  void harm(Fault fault, size_t number, Direction direction = forth) {
    harmed_ = number;
    harmed_way_ = direction;
    fault_ = fault;
  }

 private:
  struct Pair {
    detail::Socket ends[2];          // the caller's end, the listener's end
    Clock::time_point held[2] = {};  // do not read this end before that time
  };

  void run() {
    while (!ending_) {
      std::vector<pollfd> entries = {{listener_.descriptor(), POLLIN, 0}};
      for (const auto& pair : pairs_)
        for (int way : {forth, back}) {
          const bool held = Clock::now() < pair.held[way];
          entries.push_back({held ? -1 : pair.ends[way].descriptor(), POLLIN, 0});
        }
      ::poll(entries.data(), entries.size(), 10);
      if (stalled_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
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
    const int from = pair.ends[direction].descriptor(), to = pair.ends[1 - direction].descriptor();
    const bool harmed = number == harmed_ && direction == harmed_way_;
    const Fault fault = harmed ? fault_.load() : Fault::none;
    if (fault == Fault::flip || fault == Fault::repeat || fault == Fault::delay) fault_ = Fault::none;
    if (fault == Fault::stall) stalled_ = true;
    if (fault == Fault::freeze) pair.held[direction] = Clock::time_point::max();
    if (fault == Fault::delay) pair.held[direction] = Clock::now() + delay_.load();
    if (fault == Fault::stall || fault == Fault::freeze || fault == Fault::delay) return;
    if (fault == Fault::slow) pair.held[direction] = Clock::now() + std::chrono::milliseconds(100);

    char buffer[2 * 65536];
    ssize_t got = ::recv(from, buffer, sizeof buffer / 2, 0);
    if (got < 0) return;
    if (fault == Fault::half_close) {
      ::shutdown(to, SHUT_WR);
      pair.held[direction] = Clock::time_point::max();
      return;
    }
    if (got == 0 || fault == Fault::reset) {
      pair = {};
      return;
    }
    if (fault == Fault::drop) return;
    if (fault == Fault::flip) buffer[got - 1] ^= 4;
    if (fault == Fault::truncate) got /= 2;
    {
      const std::lock_guard lock(recording_);
      record_.append(buffer, static_cast<size_t>(got));
    }
    if (fault == Fault::change && forge_({buffer, static_cast<size_t>(got)})) fault_ = Fault::none;
    if (fault == Fault::repeat) {
      std::copy_n(buffer, got, buffer + got);
      got *= 2;
    }
    bytes_[direction] += static_cast<uint64_t>(got);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t n = ::send(to, buffer + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (n > 0) sent += n;
      if (n >= 0) continue;
      if (errno != EAGAIN || ending_) return;
      detail::wait_for(to, POLLOUT, Clock::now() + std::chrono::milliseconds(10));
    }
    if (fault == Fault::truncate) pair = {};
  }

  Address target_;
  detail::Listener listener_{Address{}};
  Address address_;
  std::vector<Pair> pairs_;
  std::atomic<uint64_t> bytes_[2] = {0, 0};
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<size_t> harmed_{0};
  std::atomic<Direction> harmed_way_{forth};
  std::atomic<Clock::duration> delay_{std::chrono::milliseconds(200)};
  Forge forge_;
  std::mutex recording_;
  std::string record_;
  bool stalled_ = false;
  std::atomic<bool> ending_{false};
  std::thread thread_;  // the last member, because it uses all others
};

}  // namespace tern::test
