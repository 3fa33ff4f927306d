#pragma once

#include <cstdint>
#include <vector>

namespace tern {

/// The order in which examples are visited, and one rank's share of it; a value. Rank r of N takes places r, r + N,
/// r + 2N, ... of the common order, so N ranks with batches of b see together, step by step, the examples of one rank
/// with batches of N·b.
struct Sampler {
  int64_t size = 0;      ///< examples in the data set
  bool shuffle = false;  ///< false: in the order of the data set
  uint64_t seed = 1;
  int rank = 0;
  int ranks = 1;

  /// Examples of this rank's share; shares of the ranks differ by one at most and cover the set.
  int64_t share() const;
  /// This rank's global indices in `epoch`: a pure function, the same on every machine.
  std::vector<int64_t> order(int64_t epoch) const;
};

}  // namespace tern
