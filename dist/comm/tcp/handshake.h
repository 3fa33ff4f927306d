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
#include "tern/dist/comm/wire.h"

namespace tern {
struct TcpOptions;
}  // namespace tern

namespace tern::detail {

class Monitor;

/// The kind of a connection. The values are numbers on the wire.
enum class ConnectionKind : uint8_t { control = 1, data };

/// The first bytes on a connection, or the first in TLS: who connects. In this layout, little-endian.
struct Hello {
  uint32_t magic;
  uint16_t version;
  ConnectionKind kind;
  Wire wire;
  uint32_t epoch, rank, size, process;
  uint16_t port;              ///< port at which this rank listens
  uint16_t listener;          ///< rank that it calls; `knock` fills it in
  std::array<char, 64> host;  ///< name of its machine, zero-terminated
  Digest nonce;
};
static_assert(sizeof(Hello) == 124);

Hello make_hello(ConnectionKind kind, Wire wire, uint32_t epoch, int rank, int size, uint16_t port);

/// The machine's name in a hello, with unprintable characters escaped.
std::string host_of(const Hello& hello);

/// A connection of two ranks that have proved to each other that they have the token.
struct Connection {
  Socket socket;
  FrameSeal sent, received;  ///< of the frames in each direction
};

/// A rank that listens, as both ends of a connection know it.
struct Door {
  int rank = 0;
  JobToken token = {};
};

/// Connects to the rank behind `door`, over a fresh socket to `where`: proves that this rank has the token, and checks
/// the same of the listener. With `hello.wire` = tls, TLS comes first; its key is HKDF-SHA256 of the token for this
/// epoch and both ranks. Then each side answers the other side's random challenge with HMAC-SHA256 over the words of
/// both sides and the direction. With mac, both derive keys for the frames from the token and the challenges. Returns
/// nullopt if the connection or the wait ends before the listener has decided; another connection may succeed. Throws
/// PeerError with the reason if the other end does not belong to this job, or if it refuses this rank.
std::optional<Connection> knock(Socket socket, const Hello& hello, const Door& door, const Address& where, Until until);

/// A peer that has proved that it has the token.
struct Admitted {
  Connection connection;
  Hello hello;
};

/// Admits connections that know the token, whatever strangers do. A connection has `limit` to prove itself. Without
/// TLS, the gate reads 156 bytes of it before; with TLS, OpenSSL reads its handshake. If there are more than `places`
/// connections, it drops the oldest one that has sent no hello, or the oldest of all. It never waits for a single peer.
/// One thread uses it.
class Gate {
 public:
  /// Returns why a peer with the token does not fit; "" if it fits. The peer receives the reason and is refused.
  using Objection = std::function<std::string(const Hello&)>;

  /// `listener` outlives the Gate. All connections have the same `wire`.
  Gate(Listener& listener, Door door, Wire wire, size_t places, Clock::duration limit);
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
  State read_and_answer(Pending& pending, const Objection& objection);
  State answer_hello(Pending& pending);
  State answer_proof(Pending& pending, const Objection& objection);
  State refuse(const Pending& pending, const std::string& why);

  Listener& listener_;
  const Door door_;
  const Wire wire_;
  const size_t places_;
  const Clock::duration limit_;
  std::list<Pending> pending_;  // in order of arrival
  std::optional<Admitted> admitted_;
  std::vector<Refusal> strangers_, members_;
};

/// Connects the ranks of a job. Every rank connects to rank 0 and proves that it has the token. From then on rank 0
/// watches it. When all ranks are there, rank 0 sends them the addresses of all ranks. Then every rank connects to the
/// ranks below it. Returns the data connections by rank, a closed one for this rank; `monitor` gets the control
/// connections. Throws PeerError, the same on all ranks that have joined, if the ranks do not join in time.
std::vector<Connection> rendezvous(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor);

}  // namespace tern::detail
