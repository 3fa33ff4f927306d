#pragma once

#include <vector>

#include "tern/dist/communicator.h"

namespace tern::detail {

/// Elements [begin, end) of a tensor.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

/// What one rank gives and gets where ranks deal with each other directly, by peer, itself among them: parts of its x;
/// parts of its y, or of x in place.
struct Transfers {
  std::vector<Range> sends, receives;
};
/// Of fan_out, all_gather, all_to_all, scatter, gather and shift.
Transfers direct_transfers(const CollectiveCall& call, int rank, int size);

/// Elements that one rank sends to others and receives.
struct Volume {
  int64_t sent = 0, received = 0;
};
/// By the ring algorithms, of broadcast, all_reduce, reduce_scatter and all_gather.
Volume moved_around_ring(const CollectiveCall& call, int rank, int size);
Volume moved_directly(const CollectiveCall& call, int rank, int size);

}  // namespace tern::detail
