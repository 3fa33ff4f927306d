#include "tern/dist/comm/tcp/clock_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

/// Clocks drift apart by at most one part in this many. Crystals keep 50 parts in a million.
constexpr int64_t kDrift = 10'000;

/// 70 years of nanoseconds. So no sum of four times overflows.
constexpr int64_t kLatest = int64_t{1} << 61;

}  // namespace

std::string ClockWatch::beat(Clock::time_point now) const {
  return fmt::format("{} {} {} ", now.time_since_epoch().count(), heard_sent_.count(), heard_at_.count());
}

std::string_view ClockWatch::hear(std::string_view text, Clock::time_point now) {
  std::array<int64_t, 3> numbers = {};
  for (int64_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end != text.data() + text.size() && *end == ' ';
    check(whole && number >= 0 && number <= kLatest, "sent a heartbeat without its times");
    text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  }
  const Clock::duration theirs(numbers[0]), ours(numbers[1]), came(numbers[2]), here = now.time_since_epoch();
  check(ours <= here && came <= theirs, "sent a heartbeat with times that are still to come");
  heard_sent_ = theirs;
  heard_at_ = here;
  if (ours.count() == 0) return text;  // the peer had heard nothing yet
  // If the clocks drift apart by more than the network takes, `round` is below 0.
  const Clock::duration out = came - ours, back = theirs - here, round = (here - ours) - (theirs - came);
  const ClockOffset found = {(out + back) / 2, std::max(round, Clock::duration::zero()) / 2 + (here - ours) / kDrift};
  if (const auto old = offset(now); old && old->error <= found.error) return text;
  best_ = found;
  measured_ = now;
  return text;
}

std::optional<ClockOffset> ClockWatch::offset(Clock::time_point now) const {
  if (!best_) return {};
  return ClockOffset{best_->offset, best_->error + (now - measured_) / kDrift};
}

}  // namespace tern::detail
