#pragma once

#include <array>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/tcp/frame.h"
#include "tern/dist/comm/token.h"

namespace tern {
struct TcpOptions;
}  // namespace tern

namespace tern::detail {

class Monitor;

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

/// The machine's name in a hello, fit to be printed.
std::string host_of(const Hello& hello);

/// Proves to the listener at the other end that this rank holds the token, and has that proved: each side answers the
/// other's random challenge with HMAC-SHA256 (RFC 2104) over both sides' words and the direction. It admits peers and
/// does not protect what follows. False if the connection, or the wait, ends before the listener has decided: another
/// connection may do better. A PeerError with the reason if the other is no rank of this job, or turns this one away.
bool knock(Socket& socket, const Hello& hello, const JobToken& token, const Address& where, Until until);

/// A peer that has proved itself.
struct Admitted {
  Socket socket;
  Hello hello;
};

/// Lets in who knows the token, whatever strangers do. A connection has `limit` to prove itself, and is read for 156
/// bytes before. If there are more connections than `places`, the oldest that has not even said hello is dropped. No
/// peer is ever waited for. Used by one thread.
class Gate {
 public:
  /// Why a peer that holds the token does not fit; "" if it does. The peer is told, and turned away.
  using Objection = std::function<std::string(const Hello&)>;

  /// `listener` and `token` outlive it.
  Gate(Listener& listener, const JobToken& token, size_t places, Clock::duration limit);
  ~Gate();

  /// The next peer; none if the wait ends before.
  std::optional<Admitted> admit(const Objection& objection, Until until);
  /// Why connections were turned away, each reason once; "" if none was.
  std::string refusals() const;

 private:
  struct Pending;
  using Place = std::list<Pending>::iterator;
  struct Refusal {
    std::string why;
    int64_t times = 0;
  };
  enum class State { waiting, admitted, refused };

  static void note(std::vector<Refusal>& refusals, std::string why);
  void accept_all(const Objection& objection);
  bool make_room();
  void drop_late();
  void drop(Place place, const std::string& why);
  State advance(Pending& pending, const Objection& objection);
  State answer_hello(Pending& pending);
  State answer_proof(Pending& pending, const Objection& objection);
  State refuse(const Pending& pending, const std::string& why);

  Listener& listener_;
  const JobToken& token_;
  const size_t places_;
  const Clock::duration limit_;
  std::list<Pending> pending_;  // in order of arrival
  std::optional<Admitted> admitted_;
  std::vector<Refusal> strangers_, members_;
};

/// The ranks of a job find each other: every rank connects to rank 0 and proves itself, is watched from then on, hears
/// from rank 0 where the others listen once all are there, and connects to those below it. Returns the data
/// connections by rank, none to this one; `monitor` has the others. A PeerError, the same on all ranks that are in, if
/// they do not come together in time.
std::vector<Socket> rendezvous(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor);

}  // namespace tern::detail
