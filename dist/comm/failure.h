#pragma once

#include <span>
#include <string>

#include "tern/core/error.h"
#include "tern/dist/comm/transport.h"

namespace tern {

/// The ranks can no longer work together: a rank is lost, hangs, breaks the protocol or has other settings. The text
/// names the rank at fault and the cause, and is the same on every rank that survives. Applications end with code 3.
class PeerError : public Error {
 public:
  using Error::Error;
};

}  // namespace tern

namespace tern::detail {

/// The operation that a rank has reached, and the time at which it did.
struct Progress {
  uint32_t sequence = 0;
  Clock::time_point since = Clock::now();

  void reach(uint32_t operation) {
    if (operation != sequence) *this = {operation, Clock::now()};
  }
};

/// The rank at fault, and what it did.
struct Fault {
  int rank = 0;
  std::string cause;
};

/// Finds why nothing came from the live rank `peer` while another rank waited for `limit` in operation `awaited`. The
/// rank that is furthest behind is at fault, because the others may wait for it, too. It hangs if it has stood at its
/// operation for that long; otherwise it is slow.
Fault find_stall(std::span<const Progress> ranks, int peer, uint32_t awaited, Clock::duration limit);

/// For example "1.5 s".
std::string seconds(Clock::duration duration);

}  // namespace tern::detail
