#pragma once

#include <span>
#include <string>

#include "tern/core/error.h"
#include "tern/dist/comm/transport.h"

namespace tern {

/// The ranks can no longer work together: one was lost, hangs, speaks otherwise or holds other settings. Names the
/// rank at fault and the cause; the same text on every rank that survives. Applications end with code 3.
class PeerError : public Error {
 public:
  using Error::Error;
};

}  // namespace tern

namespace tern::detail {

/// Where a rank stands, and since when.
struct Progress {
  uint32_t sequence = 0;
  Clock::time_point since = Clock::now();

  void reach(uint32_t operation) {
    if (operation != sequence) *this = {operation, Clock::now()};
  }
};

/// A rank at fault, and what it did.
struct Fault {
  int rank = 0;
  std::string cause;
};

/// Why nothing came from living `peer` while another rank waited for `limit` in operation `awaited`. At fault is
/// whoever is furthest behind, since the others may wait for it as well: it hangs where it has stood for that long,
/// else it is slow.
Fault find_stall(std::span<const Progress> ranks, int peer, uint32_t awaited, Clock::duration limit);

/// "1.5 s"
std::string seconds(Clock::duration duration);

}  // namespace tern::detail
