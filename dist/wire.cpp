#include "tern/dist/wire.h"

#include <algorithm>
#include <numeric>

namespace tern {
namespace {

int64_t sum(std::span<const int64_t> parts) { return std::accumulate(parts.begin(), parts.end(), int64_t{0}); }

/// The same where nothing is there to travel.
WireLoad unless_empty(const WireLoad& load) { return load.sent == 0 ? WireLoad{} : load; }

}  // namespace

WireLoad all_reduce_load(int64_t bytes, int ranks) {
  const int64_t steps = 2 * (ranks - 1);
  const auto passed = static_cast<double>(steps * bytes);
  return unless_empty({.busiest = passed / ranks, .hops = steps, .sent = steps * bytes});
}

WireLoad all_gather_load(std::span<const int64_t> parts) {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  const int64_t all = sum(parts);
  // A rank passes on all parts but one, so that the cable into the rank of the smallest is the busiest.
  return unless_empty(
      {.busiest = static_cast<double>(all - std::ranges::min(parts)), .hops = others, .sent = others * all});
}

WireLoad all_to_all_load(std::span<const int64_t> parts) {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  const int64_t all = sum(parts), most = std::max(others * std::ranges::max(parts), all - std::ranges::min(parts));
  return unless_empty({.busiest = static_cast<double>(most), .hops = 1, .sent = others * all});
}

WireLoad shift_load(std::span<const int64_t> parts) {
  return unless_empty({.busiest = static_cast<double>(std::ranges::max(parts)), .hops = 1, .sent = sum(parts)});
}

WireLoad root_load(std::span<const int64_t> parts) {
  const int64_t others = sum(parts) - parts.front();
  return unless_empty({.busiest = static_cast<double>(others), .hops = 1, .sent = others});
}

}  // namespace tern
