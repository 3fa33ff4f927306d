#include "tern/dist/comm/failure.h"

#include <fmt/format.h>

#include <algorithm>

namespace tern::detail {

std::string seconds(Clock::duration duration) {
  const double count = std::chrono::duration<double>(duration).count();
  return count < 999.5 ? fmt::format("{:.3g} s", count) : fmt::format("{:.0f} s", count);
}

Fault find_stall(std::span<const Progress> ranks, int peer, uint32_t awaited, Clock::duration limit) {
  const auto last = std::ranges::min_element(ranks, {}, &Progress::sequence);
  if (last->sequence < ranks[peer].sequence) peer = static_cast<int>(last - ranks.begin());
  const Progress& progress = ranks[peer];
  const Clock::duration still = Clock::now() - progress.since;
  // News of progress is late by up to one heartbeat, which is a small part of any sensible limit.
  if (still * 10 >= limit * 8)
    return {peer, fmt::format("hangs: it lives, but has stood at operation {} for {}; a rank waits in operation {}",
                              progress.sequence, seconds(still), awaited)};
  return {peer, fmt::format("is slow: it reached operation {} only {} ago; another rank waited in operation {} for {}",
                            progress.sequence, seconds(still), awaited, seconds(limit))};
}

}  // namespace tern::detail
