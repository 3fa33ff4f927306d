#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tern/dist/socket.h"
#include "tern/dist/tcp/frame.h"
#include "tern/dist/token.h"

namespace tern::detail {

/// What a connection is for; a number on the wire.
enum class Purpose : uint8_t { control = 1, data };

/// Who wants in: the first bytes on a connection, in this layout, little-endian.
struct Hello {
  uint32_t magic;
  uint16_t version;
  Purpose purpose;
  uint8_t zero;
  uint32_t epoch, rank, size, process;
  uint16_t port;  ///< where this rank listens
  uint16_t zero2;
  std::array<char, 64> host;  ///< its machine's name, zero-terminated
  std::array<std::byte, 32> nonce;
};
static_assert(sizeof(Hello) == 124);

Hello make_hello(Purpose purpose, uint32_t epoch, int rank, int size, uint16_t port);

/// Proves to the listener at the other end that this rank holds the token, and has that proved: each side answers the
/// other's random challenge with HMAC-SHA256 (RFC 2104) over both sides' words and the direction. It admits peers and
/// does not protect what follows. PeerError where the other is no rank of this job; "" or why it closed without a word.
void knock(Socket& socket, const Hello& hello, const JobToken& token, const Address& where, Clock::time_point deadline);

/// A peer that has proved itself.
struct Admitted {
  Socket socket;
  Hello hello;
};

/// Lets in who knows the token, whatever strangers do: each connection has `limit` to prove itself and is read for 156
/// bytes before; no more than 32 at once. Used by one thread.
class Gate {
 public:
  Gate(Listener& listener, uint32_t epoch, int size, const JobToken& token, Clock::duration limit);
  ~Gate();

  /// The next peer; none by the deadline. A peer with the token that does not fit the job is a PeerError.
  std::optional<Admitted> admit(Clock::time_point deadline);
  /// Why the last connection was turned away; "" where none was.
  const std::string& refused() const { return refused_; }

 private:
  struct Pending;

  bool advance(Pending& pending);
  void check_fits(Pending& pending);

  Listener& listener_;
  uint32_t epoch_;
  int size_;
  const JobToken& token_;
  Clock::duration limit_;
  std::vector<Pending> pending_;
  std::string refused_;
};

}  // namespace tern::detail
