#pragma once

#include <span>
#include <vector>

#include "tests/bench/case.h"

namespace tern::bench {

/// Times of one case, in milliseconds.
struct Result {
  const Case* measured;
  std::vector<double> times;

  double median() const;
  double minimum() const;
};

/// Runs all cases `rounds` times in turn, each for about a third of a second a round, so that what disturbs the machine
/// disturbs all alike and ratios of medians are fair. The first two runs of each round are not counted.
std::vector<Result> measure(std::span<const Case> cases, int rounds);

}  // namespace tern::bench
