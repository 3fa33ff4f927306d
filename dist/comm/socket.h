#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/ledger.h"
#include "tern/dist/comm/transport.h"

namespace tern::detail {

class Tls;

/// The result of a read or a write on a socket.
struct Moved {
  size_t bytes = 0;
  std::string ended;  // why no more bytes will come; "" while the connection is open
};

/// The end of a wait: a time, or earlier if a descriptor becomes readable.
struct Until {
  Until(Clock::time_point until_time, int until_readable = -1) : time(until_time), interrupt(until_readable) {}

  Clock::time_point time;
  int interrupt;  ///< -1: no descriptor
};

/// A connected TCP socket that never blocks and counts its bytes in a ledger. It owns its descriptor. One thread at a
/// time may use it. Without TLS two threads may, if one only reads and the other only writes.
class Socket {
 public:
  Socket();
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  /// Counts bytes in `ledger` from now on, and adds the bytes that were moved before.
  void count_in(Ledger& ledger);
  /// The kernel ends the connection if sent bytes stay unacknowledged for this long.
  void set_patience(Clock::duration patience) const;
  /// If both ends are on this machine, the kernel queues at most about as many bytes as a core's cache holds. Then the
  /// receiver's copy reads from the cache.
  void queue_within_cache() const;
  /// The kernel drops all state of the connection at its close; otherwise it keeps it for a minute.
  void reset_when_closed() const;

  /// From now on, TLS protects all bytes. `shake_hands` comes first. The ledger counts encrypted bytes.
  void protect(std::unique_ptr<Tls> tls);
  /// Goes on with the handshake of TLS. Returns whether it is over; if not, more bytes must come. Throws TlsError, or
  /// another Error if the connection is closed.
  bool shake_hands();
  /// The same until it is over; returns false if the wait ends before.
  bool shake_hands(Until until);
  const Tls* tls() const { return tls_.get(); }
  /// Whether `read` has bytes although the kernel has none: TLS decrypts more at once than it is asked for.
  bool holds_bytes() const;

  /// Moves as many bytes as the kernel takes or has, perhaps none. With TLS, `flush` sends the rest of what `write` has
  /// taken, and `write` takes nothing before.
  Moved write(std::span<const iovec> parts);
  Moved read(std::span<const iovec> parts);
  /// Returns whether the kernel has all bytes that `write` has taken, and the alert if TLS has refused what came.
  /// `ended` gets the reason if it never will.
  bool flush(std::string& ended);
  /// Moves all bytes. Returns false if the connection or the wait ends before.
  bool write_all(std::span<const std::byte> bytes, Until until);
  bool read_all(std::span<std::byte> bytes, Until until);

  /// The numeric addresses of the two ends.
  Address local() const;
  Address remote() const;

 private:
  template <class Move>
  bool move_all(size_t bytes, short event, Until until, const Move& move);
  Moved write_raw(std::span<const iovec> parts);
  Moved read_raw(std::span<const iovec> parts);
  std::function<size_t(std::span<std::byte>, std::span<std::byte>)> source(Moved& last);

  int descriptor_ = -1;
  std::unique_ptr<Tls> tls_;
  Ledger* ledger_ = nullptr;
  size_t sent_before_ = 0;
  size_t received_before_ = 0;
};

/// A socket that accepts connections.
class Listener {
 public:
  /// Port 0 means any free port; `address` tells which. Throws InputError with the address and the system's reason if
  /// it cannot listen there.
  explicit Listener(const Address& address);
  Listener(Listener&& other) noexcept : socket_(std::move(other.socket_)) {}
  /// Takes over a listening socket, for example one that another process left open for this one.
  static Listener adopt(int descriptor) { return Listener(Socket(descriptor)); }

  int descriptor() const { return socket_.descriptor(); }
  Address address() const { return socket_.local(); }
  /// Returns a closed Socket if no connection waits, or if the system cannot accept it; errno tells which.
  Socket accept();

 private:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  Socket socket_;
};

/// Tries the host's addresses until one answers. Returns a closed Socket if the wait ends before; then `why` holds the
/// reason.
Socket connect(const Address& address, Until until, std::string& why);

/// Waits for `event` (poll.h) on one descriptor. Returns false if the wait ends before. With descriptor -1 it only
/// waits.
bool wait_for(int descriptor, short event, Until until);
/// Milliseconds from now to `deadline` for poll, rounded up, from 0 to 60,000.
int poll_timeout(Clock::time_point deadline);

}  // namespace tern::detail
