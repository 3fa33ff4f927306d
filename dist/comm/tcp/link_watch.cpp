#include "tern/dist/comm/tcp/link_watch.h"

#include <fmt/format.h>

#include <charconv>
#include <tuple>

#include "tern/core/error.h"

namespace tern::detail {

std::string format(const LinkReport& report) {
  return fmt::format("{} {} {} {}", report.awaited, report.received, report.taker, fmt::join(report.sent, " "));
}

LinkReport parse_link_report(std::string_view text, int ranks) {
  const auto next = [&text](auto& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    check(error == std::errc(), "sent a report on its connections that is not whole");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  };
  LinkReport report = {.sent = std::vector<uint64_t>(static_cast<size_t>(ranks))};
  next(report.awaited);
  next(report.received);
  next(report.taker);
  for (uint64_t& sent : report.sent) next(sent);
  const auto is_rank = [ranks](int rank) { return rank >= -1 && rank < ranks; };
  check(text.empty() && is_rank(report.awaited) && is_rank(report.taker),
        "sent a report on connections that it does not have");
  return report;
}

LinkReport LinkCounts::report() const {
  LinkReport report = {.awaited = awaited_.load(std::memory_order_relaxed),
                       .taker = taker_.load(std::memory_order_relaxed)};
  if (report.awaited >= 0)
    report.received = received_[static_cast<size_t>(report.awaited)].load(std::memory_order_relaxed);
  for (const Count& sent : sent_) report.sent.push_back(sent.load(std::memory_order_relaxed));
  return report;
}

void LinkWatch::note(int rank, LinkReport report) {
  Rank& its = ranks_[static_cast<size_t>(rank)];
  const auto taken = [](const LinkReport& r) {
    return r.taker < 0 || r.sent.empty() ? 0 : r.sent[static_cast<size_t>(r.taker)];
  };
  const auto wait = [&taken](const LinkReport& r) { return std::tuple(r.awaited, r.received, r.taker, taken(r)); };
  if (wait(report) != wait(its.report)) its.waits_since = Clock::now();
  if (report.awaited != its.report.awaited || report.received != its.report.received) its.missing_since.reset();
  its.report = std::move(report);
}

uint64_t LinkWatch::handed_over(int from, size_t to) const {
  const auto& sent = ranks_[static_cast<size_t>(from)].report.sent;
  return sent.empty() ? 0 : sent[to];
}

std::optional<int> LinkWatch::find_waiting(int peer, Clock::duration limit) const {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& [report, waits_since, unused] = ranks_[rank];
    const bool waits = report.awaited == peer || report.taker == peer;
    if (waits && Clock::now() - waits_since > limit) return static_cast<int>(rank);
  }
  return {};
}

std::optional<Fault> LinkWatch::find_lost(Clock::duration limit) {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& its = ranks_[rank];
    const auto& [awaited, received, unused, sent] = its.report;
    const uint64_t handed = awaited < 0 ? 0 : handed_over(awaited, rank);
    if (handed <= received)
      its.missing_since.reset();
    else if (!its.missing_since)
      its.missing_since = Clock::now();
    else if (Clock::now() - *its.missing_since > limit)
      return Fault{awaited, fmt::format("sent {} bytes to rank {} that do not arrive: none came for {}",
                                        handed - received, rank, seconds(limit))};
  }
  return {};
}

}  // namespace tern::detail
