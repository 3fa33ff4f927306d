#pragma once

#include <cstdint>
#include <span>

namespace tern {

/// What a collective operation puts on the ranks' cables, of which each carries both directions at once: what
/// `collectives/` does, in numbers. Framing is not in it.
struct WireLoad {
  double busiest = 0;  ///< bytes through the cable that is busy longest, in its busier direction
  int64_t hops = 0;    ///< messages of which each waits for the one before
  int64_t sent = 0;    ///< bytes that all ranks send together
};

/// Of `bytes` on each of N ranks, around the ring: 2(N-1)/N of them a rank.
WireLoad all_reduce_load(int64_t bytes, int ranks);
/// Of parts[r] bytes from rank r, around the ring.
WireLoad all_gather_load(std::span<const int64_t> parts);
/// Of parts[r] bytes from every rank to rank r.
WireLoad all_to_all_load(std::span<const int64_t> parts);
/// Of parts[r] bytes from rank r to the next one.
WireLoad shift_load(std::span<const int64_t> parts);
/// Of parts[r] bytes between rank r and a root, whose own are `parts[0]`: gather and scatter.
WireLoad root_load(std::span<const int64_t> parts);

/// What a network asks: seconds, α + β·bytes (Hockney, 1994) for each of the messages that follow on each other.
struct LinkCost {
  double hop = 0;   ///< α
  double byte = 0;  ///< β

  double seconds(const WireLoad& load) const { return hop * static_cast<double>(load.hops) + byte * load.busiest; }
};

}  // namespace tern
