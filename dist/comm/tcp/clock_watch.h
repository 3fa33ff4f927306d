#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tern/dist/comm/transport.h"

namespace tern::detail {

/// Measures the offset between this rank's clock and that of a peer, as NTP does (RFC 5905, section 8). Each heartbeat
/// carries the time at which it leaves, and the times at which the other side's last heartbeat left and came. A monitor
/// owns one for each link. Not thread-safe.
class ClockWatch {
 public:
  /// The start of the text of the next heartbeat.
  std::string beat(Clock::time_point now) const;
  /// Reads the start of the text of a heartbeat that came at `now`, and returns the rest. Throws Error if `text` does
  /// not start as `beat` writes it.
  std::string_view hear(std::string_view text, Clock::time_point now);
  /// The peer's clock minus this rank's, from the best of all heartbeats: half of the time that the network took, and
  /// the most that the clocks drift, bound the error.
  std::optional<ClockOffset> offset(Clock::time_point now) const;

 private:
  Clock::duration heard_sent_ = {}, heard_at_ = {};  // of the last heartbeat, by the peer's and by this rank's clock
  std::optional<ClockOffset> best_;
  Clock::time_point measured_ = {};
};

}  // namespace tern::detail
