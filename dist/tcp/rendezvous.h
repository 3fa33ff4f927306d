#pragma once

#include <string>
#include <vector>

#include "tern/dist/tcp.h"
#include "tern/dist/tcp/monitor.h"

namespace tern::detail {

/// A job whose ranks have found each other.
struct Mesh {
  std::vector<ControlLink> control;  ///< to rank 0; on rank 0 to all others
  std::vector<Socket> data;          ///< by rank; none to this one
  std::vector<std::string> names;    ///< by rank: "rank 2 (host, process 4711)"
};

/// Rank 0 waits until every rank has connected and proved itself, then tells all where each listens; every rank
/// connects to those below it.
Mesh rendezvous(const TcpOptions& options, std::optional<Listener> listener);

}  // namespace tern::detail
