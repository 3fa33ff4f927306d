#pragma once

#include <span>
#include <vector>

#include "tests/bench/case.h"

namespace tern::bench {

/// The times of one case, in milliseconds.
struct Result {
  const Case* measured;
  std::vector<double> times;

  double median() const;
  double minimum() const;
};

/// Runs all cases in turn, `rounds` times. A case runs for about a third of a second per round. Disturbances of the
/// machine then affect all cases alike, and ratios of medians are fair. The first two runs of each round do not count.
std::vector<Result> measure(std::span<const Case> cases, int rounds);

}  // namespace tern::bench
