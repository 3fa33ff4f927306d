#include "tern/dist/comm/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "tern/core/error.h"
#include "tern/dist/comm/address.h"
#include "tern/dist/comm/tcp/tls.h"

namespace tern::detail {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Gives one text for every kind of lost connection, because all ranks must report the same cause.
Moved ended(int error) {
  const bool gone = error == 0 || error == ECONNRESET || error == EPIPE || error == ECONNABORTED;
  return {0, gone ? "closed its connection" : "cannot be reached: " + reason(error)};
}

Moved moved(ssize_t result) {
  if (result > 0) return {static_cast<size_t>(result), ""};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return ended(errno);
}

void set(int descriptor, int level, int option, int value) {
  ::setsockopt(descriptor, level, option, &value, sizeof value);
}

/// The kernel sends small messages at once (TCP_NODELAY).
void send_at_once(int descriptor) { set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1); }

bool is_readable(int descriptor) {
  pollfd entry = {descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

template <class Name>
Address address_of(int descriptor, Name name) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof storage;
  name(descriptor, reinterpret_cast<sockaddr*>(&storage), &length);
  return numeric(storage, length);
}

}  // namespace

Socket::Socket() = default;
Socket::Socket(int descriptor) : descriptor_(descriptor) {}

Socket::Socket(Socket&& other) noexcept { *this = std::move(other); }

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(tls_, other.tls_);
  std::swap(ledger_, other.ledger_);
  std::swap(sent_before_, other.sent_before_);
  std::swap(received_before_, other.received_before_);
  return *this;
}

Socket::~Socket() {
  if (open()) ::close(descriptor_);
}

void Socket::count_in(Ledger& ledger) {
  ledger_ = &ledger;
  ledger.sent(std::exchange(sent_before_, 0));
  ledger.received(std::exchange(received_before_, 0));
}

void Socket::set_patience(Clock::duration patience) const {
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(patience);
  set(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit.count()));
}

void Socket::queue_within_cache() const {
  if (local().host == remote().host) set(descriptor_, SOL_SOCKET, SO_SNDBUF, 160 * 1024);
}

void Socket::reset_when_closed() const {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Moved Socket::write_raw(std::span<const iovec> parts) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const Moved result = moved(::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  if (ledger_)
    ledger_->sent(result.bytes);
  else
    sent_before_ += result.bytes;
  return result;
}

Moved Socket::read_raw(std::span<const iovec> parts) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  const ssize_t got = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
  if (got == 0) return ended(0);  // errno is stale here
  const Moved result = moved(got);
  if (ledger_)
    ledger_->received(result.bytes);
  else
    received_before_ += result.bytes;
  return result;
}

void Socket::protect(std::unique_ptr<Tls> tls) { tls_ = std::move(tls); }

bool Socket::shake_hands() {
  Moved came;
  std::string gone;
  bool over = false;
  try {
    over = tls_->shake_hands(source(came));
  } catch (const Error&) {
    flush(gone);  // the alert with which TLS refuses
    throw;
  }
  flush(gone);
  check(gone.empty(), gone);
  check(over || came.ended.empty(), came.ended);
  return over;
}

bool Socket::shake_hands(Until until) {
  while (!shake_hands())
    if (!wait_for(descriptor_, POLLIN, until)) return false;
  return true;
}

bool Socket::holds_bytes() const { return tls_ && tls_->holds_bytes(); }

/// Reads encrypted bytes for TLS. `last` gets the result of the last read.
Tls::Source Socket::source(Moved& last) {
  return [this, &last](std::span<std::byte> room, std::span<std::byte> more) {
    const iovec parts[] = {{room.data(), room.size()}, {more.data(), more.size()}};
    last = read_raw(parts);
    return last.bytes;
  };
}

bool Socket::flush(std::string& ended) {
  while (tls_ && !tls_->leaving().empty()) {
    const ConstBytes leaving = tls_->leaving();
    const iovec part = {const_cast<std::byte*>(leaving.data()), leaving.size()};
    const Moved sent = write_raw({&part, 1});
    if (!sent.ended.empty()) ended = sent.ended;
    if (sent.bytes == 0) return false;
    tls_->left(sent.bytes);
  }
  return true;
}

Moved Socket::write(std::span<const iovec> parts) {
  if (!tls_) return write_raw(parts);
  Moved taken;
  if (!flush(taken.ended)) return taken;
  // A record of TLS has at most 16 KiB. A frame's header shares its record with the payload's begin.
  std::array<std::byte, 16 << 10> first;
  size_t in_first = 0;
  for (const iovec& part : parts) {
    const size_t count = std::min(part.iov_len, first.size() - in_first);
    if (count > 0) std::memcpy(first.data() + in_first, part.iov_base, count);
    in_first += count;
  }
  try {
    taken.bytes = tls_->write(ConstBytes(first).first(in_first));
    size_t skip = taken.bytes;
    for (const iovec& part : parts) {
      const size_t skipped = std::min(skip, part.iov_len);
      skip -= skipped;
      const ConstBytes rest(static_cast<const std::byte*>(part.iov_base) + skipped, part.iov_len - skipped);
      if (taken.bytes < Tls::kMostAtOnce) taken.bytes += tls_->write(rest);
    }
  } catch (const Error& error) {
    return {0, error.what()};
  }
  flush(taken.ended);
  return taken;
}

Moved Socket::read(std::span<const iovec> parts) {
  if (!tls_) return read_raw(parts);
  Moved came;
  const Tls::Source more = source(came);
  size_t bytes = 0;
  try {
    for (const iovec& part : parts) {
      const size_t got = tls_->read({static_cast<std::byte*>(part.iov_base), part.iov_len}, more);
      bytes += got;
      if (got < part.iov_len) break;
    }
  } catch (const Error& error) {
    return {0, error.what()};
  }
  return {bytes, bytes > 0 ? "" : came.ended};
}

template <class Move>
bool Socket::move_all(size_t bytes, short event, Until until, const Move& move) {
  for (size_t done = 0; done < bytes;) {
    const Moved result = move(done);
    if (!result.ended.empty()) return false;
    done += result.bytes;
    if (result.bytes == 0 && !wait_for(descriptor_, event, until)) return false;
  }
  return true;
}

bool Socket::write_all(std::span<const std::byte> bytes, Until until) {
  const bool taken = move_all(bytes.size(), POLLOUT, until, [&](size_t done) {
    const iovec part = {const_cast<std::byte*>(bytes.data() + done), bytes.size() - done};
    return write({&part, 1});
  });
  if (!taken) return false;
  for (std::string gone; !flush(gone);)
    if (!gone.empty() || !wait_for(descriptor_, POLLOUT, until)) return false;
  return true;
}

bool Socket::read_all(std::span<std::byte> bytes, Until until) {
  return move_all(bytes.size(), POLLIN, until, [&](size_t done) {
    const iovec part = {bytes.data() + done, bytes.size() - done};
    return read({&part, 1});
  });
}

Address Socket::local() const { return address_of(descriptor_, ::getsockname); }
Address Socket::remote() const { return address_of(descriptor_, ::getpeername); }

Listener::Listener(const Address& address) {
  int error = 0;
  for (const Resolved& place : resolve(address)) {
    Socket socket(::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.open()) set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (socket.open() && ::bind(socket.descriptor(), place.pointer(), place.length) == 0 &&
        ::listen(socket.descriptor(), SOMAXCONN) == 0) {
      socket_ = std::move(socket);
      return;
    }
    error = errno;
  }
  fail_input({address, ": cannot listen there: ", reason(error)});
}

Socket Listener::accept() {
  Socket socket(::accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.open()) send_at_once(socket.descriptor());
  return socket;
}

Socket connect(const Address& address, Until until, std::string& why) {
  // If a listener's queue is full, the kernel tries again only after 1 s, 3 s, 7 s. A new attempt is sooner.
  auto patience = std::chrono::milliseconds(250);
  for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
    // A name that is not known may come later, for example if the machine is about to start.
    for (const Resolved& place : look_up(address, why)) {
      Socket socket(::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!socket.open()) {  // for example, the machine has no IPv6
        why = reason(errno);
        continue;
      }
      int error = ::connect(socket.descriptor(), place.pointer(), place.length) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        socklen_t length = sizeof error;
        error = ETIMEDOUT;
        const auto enough = Clock::now() + patience;
        if (wait_for(socket.descriptor(), POLLOUT, {std::min(until.time, enough), until.interrupt}))
          ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
        else if (until.time < enough && !why.empty())
          return {};  // this attempt was cut short: an earlier one knows more
        else
          patience *= 2;
      }
      send_at_once(socket.descriptor());
      // If nobody listens at a port of this machine, the system may choose this port for the call, which then reaches
      // itself.
      if (error == 0 && socket.local() == socket.remote()) error = ECONNREFUSED;
      if (error == 0) return socket;
      why = reason(error);
    }
    if (Clock::now() + pause >= until.time) return {};
    wait_for(-1, 0, {Clock::now() + pause, until.interrupt});
    if (is_readable(until.interrupt)) return {};
  }
}

int poll_timeout(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

bool wait_for(int descriptor, short event, Until until) {
  pollfd entries[] = {{descriptor, event, 0}, {until.interrupt, POLLIN, 0}};
  while (Clock::now() < until.time && entries[1].revents == 0)
    if (::poll(entries, std::size(entries), poll_timeout(until.time)) > 0 && entries[0].revents != 0) return true;
  return false;
}

}  // namespace tern::detail
