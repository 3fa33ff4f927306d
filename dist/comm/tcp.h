#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/comm/transport.h"

namespace tern {

/// How one rank finds the others.
struct TcpOptions {
  int rank = 0;
  int size = 1;
  Address master = {};  ///< where rank 0 listens
  JobToken token = {};  ///< never empty
  uint32_t epoch = 0;   ///< of the job: counts its restarts
  Deadlines deadlines = {};
  /// Hears whom this rank waits for at the start, from the thread that joins: "waiting for rank 1, 3 to join: 10 s of
  /// 60 s".
  std::function<void(const std::string&)> note = {};
};

/// Joins this process to the job: a full mesh of TCP connections, each admitted by the token, and a star of others that
/// carry signs of life. Returns once all ranks are there. Rank 0 may hand over a listener it made itself, as where the
/// port was to be any free one. Bytes are framed (48 bytes, CRC-32C); not encrypted. PeerError where the ranks do not
/// come together in time; InputError for an address that cannot be had, or without a token.
std::unique_ptr<Transport> make_tcp(const TcpOptions& options, std::optional<detail::Listener> listener = {});

}  // namespace tern
