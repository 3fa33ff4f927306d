#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/comm/transport.h"
#include "tern/dist/comm/wire.h"

namespace tern {

/// How one rank finds the other ranks.
struct TcpOptions {
  int rank = 0;
  int size = 1;
  Address master = {};  ///< address at which rank 0 listens
  JobToken token = {};  ///< never empty
  Wire wire = Wire::tls;
  uint32_t epoch = 0;  ///< restarts of the job
  Deadlines deadlines = {};
  /// Receives notes about the ranks that this rank waits for at the start, on the thread that joins. For example
  /// "waiting for rank 1, 3 to join: 10 s of 60 s".
  std::function<void(const std::string&)> note = {};
};

/// Joins this process to the job. The ranks form a full mesh of TCP connections for data; the token admits each of
/// them. A star of further connections carries heartbeats. Returns when all ranks have joined. Rank 0 may pass a
/// listener that it made itself, for example on any free port. `wire` says what protects the bytes.
/// Frames have a header of 64 bytes. Throws PeerError if the ranks do not join in time. Throws InputError if an address
/// cannot be used, without a token, or if a plain wire would leave this machine.
std::unique_ptr<Transport> make_tcp(const TcpOptions& options, std::optional<detail::Listener> listener = {});

}  // namespace tern
