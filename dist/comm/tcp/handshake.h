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

/// The kind of a connection. The values are numbers on the wire.
enum class ConnectionKind : uint8_t { control = 1, data };

/// The first bytes on a connection: who connects. In this layout, little-endian.
struct Hello {
  uint32_t magic;
  uint16_t version;
  ConnectionKind kind;
  uint8_t zero;
  uint32_t epoch, rank, size, process;
  uint16_t port;  ///< port at which this rank listens
  uint16_t zero2;
  std::array<char, 64> host;  ///< name of its machine, zero-terminated
  std::array<std::byte, 32> nonce;
};
static_assert(sizeof(Hello) == 124);

Hello make_hello(ConnectionKind kind, uint32_t epoch, int rank, int size, uint16_t port);

/// The machine's name in a hello, with unprintable characters escaped.
std::string host_of(const Hello& hello);

/// Proves to the listener at the other end that this rank holds the token, and checks the same of the listener. Each
/// side answers the other side's random challenge with HMAC-SHA256 (RFC 2104) over the words of both sides and the
/// direction. This admits peers and does not protect later bytes. Returns false if the connection or the wait ends
/// before the listener has decided; another connection may succeed. Throws PeerError with the reason if the other end
/// does not belong to this job, or if it refuses this rank.
bool knock(Socket& socket, const Hello& hello, const JobToken& token, const Address& where, Until until);

/// A peer that has proved that it has the token.
struct Admitted {
  Socket socket;
  Hello hello;
};

/// Admits connections that know the token, whatever strangers do. A connection has `limit` to prove itself, and the
/// gate reads 156 bytes of it before. If there are more than `places` connections, it drops the oldest one that has
/// sent no hello, or the oldest of all. It never waits for a single peer. One thread uses it.
class Gate {
 public:
  /// Returns why a peer with the token does not fit; "" if it fits. The peer receives the reason and is refused.
  using Objection = std::function<std::string(const Hello&)>;

  /// `listener` and `token` outlive the Gate.
  Gate(Listener& listener, const JobToken& token, size_t places, Clock::duration limit);
  ~Gate();

  /// The next peer; none if the wait ends before.
  std::optional<Admitted> admit(const Objection& objection, Until until);
  /// Why connections were refused, each reason once; "" if none was.
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

/// Connects the ranks of a job. Every rank connects to rank 0 and proves that it has the token. From then on rank 0
/// watches it. When all ranks are there, rank 0 sends them the addresses of all ranks. Then every rank connects to the
/// ranks below it. Returns the data connections by rank, none for this rank; `monitor` gets the control connections.
/// Throws PeerError, the same on all ranks that have joined, if the ranks do not join in time.
std::vector<Socket> rendezvous(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor);

}  // namespace tern::detail
