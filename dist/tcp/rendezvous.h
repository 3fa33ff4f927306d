#pragma once

#include <optional>
#include <vector>

#include "tern/dist/tcp.h"
#include "tern/dist/tcp/monitor.h"

namespace tern::detail {

/// The ranks of a job find each other: every rank connects to rank 0 and proves itself, is watched from then on, hears
/// from rank 0 where the others listen once all are there, and connects to those below it. Returns the data
/// connections by rank, none to this one; `monitor` has the others. A PeerError, the same on all ranks that are in, if
/// they do not come together in time.
std::vector<Socket> rendezvous(const TcpOptions& options, std::optional<Listener> listener, Monitor& monitor);

}  // namespace tern::detail
