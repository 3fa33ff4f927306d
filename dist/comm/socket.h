#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/ledger.h"
#include "tern/dist/comm/transport.h"

namespace tern::detail {

/// What a socket's read or write came to.
struct Moved {
  size_t bytes = 0;
  std::string ended;  // why nothing more will come; "" while the connection stands
};

/// When a wait ends: at a time, or before it as soon as a descriptor can be read.
struct Until {
  Until(Clock::time_point until_time, int until_readable = -1) : time(until_time), interrupt(until_readable) {}

  Clock::time_point time;
  int interrupt;  ///< -1: none
};

/// A connected TCP socket that never waits, counted in a ledger; owns its descriptor. Used by one thread at a time,
/// and by a second one only where one reads and the other writes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  /// From now on bytes are counted there; before, they are kept and added at this call.
  void count_in(Ledger& ledger);
  /// The kernel gives up the connection where bytes go unanswered for that long.
  void set_patience(Clock::duration patience) const;
  /// Where both ends are on this machine, keeps the kernel from queueing more than a core's cache holds: the receiver's
  /// copy finds the bytes there.
  void queue_within_cache() const;
  /// The kernel keeps nothing of the connection once it is closed here, as it does for a minute otherwise.
  void reset_when_closed() const;

  /// As many bytes as the kernel takes or has, perhaps none.
  Moved write(std::span<const iovec> parts);
  Moved read(std::span<const iovec> parts);
  /// All of them; false if the connection or the wait ends before.
  bool write_all(std::span<const std::byte> bytes, Until until);
  bool read_all(std::span<std::byte> bytes, Until until);

  /// The numeric addresses of the two ends.
  Address local() const;
  Address remote() const;

 private:
  template <class Move>
  bool move_all(size_t bytes, short event, Until until, const Move& move);

  int descriptor_ = -1;
  Ledger* ledger_ = nullptr;
  size_t sent_before_ = 0;
  size_t received_before_ = 0;
};

/// A socket that waits for others to connect.
class Listener {
 public:
  /// Port 0: a free one, see `address`. InputError with the address and the system's reason where it cannot be had.
  explicit Listener(const Address& address);
  Listener(Listener&& other) noexcept : socket_(std::move(other.socket_)) {}
  /// Takes over a listening socket, as one that another process has left open for this one.
  static Listener adopt(int descriptor) { return Listener(Socket(descriptor)); }

  int descriptor() const { return socket_.descriptor(); }
  Address address() const { return socket_.local(); }
  /// Not open if nobody has come yet, or if the system cannot: errno tells.
  Socket accept();

 private:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  Socket socket_;
};

/// Tries the host's addresses until one answers; not open if the wait ends before, and `why` says what kept it.
Socket connect(const Address& address, Until until, std::string& why);

/// Whether only this machine can reach the address. A host without an address is an InputError.
bool is_loopback(const Address& address);

/// Waits for `event` (poll.h) on one descriptor; false if the wait ends before. Descriptor -1 just waits.
bool wait_for(int descriptor, short event, Until until);
/// What poll understands: milliseconds from now, rounded up.
int poll_timeout(Clock::time_point deadline);

}  // namespace tern::detail
