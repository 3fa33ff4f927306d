#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tern/apps/reproduce/experiments.h"

namespace tern::reproduce::test {
namespace {

/// The number of runs for each number of workers; 1 is the float baseline.
std::map<std::string, int> runs_by_workers(const ExperimentOptions& options, int64_t steps) {
  std::map<std::string, int> count;
  for (const Run& run : terngrad_fig3().make(options)->runs()) {
    EXPECT_EQ(run.steps, steps) << run.name;
    for (const auto& [column, cell] : run.columns)
      if (column == "workers") ++count[cell];
  }
  return count;
}

TEST(TernGradFigure3, HasThreeSeedsUpTo16WorkersAndOneBeyond) {
  using Counts = std::map<std::string, int>;  // two rules, each with its seeds
  EXPECT_EQ(runs_by_workers({.data = "digits"}, 10000),
            (Counts{{"1", 6}, {"2", 6}, {"4", 6}, {"8", 6}, {"16", 6}, {"32", 2}, {"64", 2}}));
  EXPECT_EQ(runs_by_workers({.data = "digits", .quick = true}, 500), (Counts{{"1", 2}, {"2", 2}, {"4", 2}, {"16", 2}}));
  EXPECT_EQ(runs_by_workers({.data = "digits", .iterations = 2000, .seeds = 2, .workers = {64}}, 2000),
            (Counts{{"1", 4}, {"64", 4}}));
}

}  // namespace
}  // namespace tern::reproduce::test
