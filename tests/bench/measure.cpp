#include "tests/bench/measure.h"

#include <algorithm>
#include <chrono>

#include "tern/core/parallel.h"

namespace tern::bench {
namespace {

double milliseconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void run_round(const std::function<void()>& run, std::vector<double>& times) {
  constexpr double kRoundMs = 330;
  run();
  const double guess = milliseconds(run);
  const int repeats = std::clamp(static_cast<int>(kRoundMs / std::max(guess, 1e-3)), 2, 200);
  for (int i = 0; i < repeats; ++i) times.push_back(milliseconds(run));
}

}  // namespace

double Result::median() const {
  auto sorted = times;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

double Result::minimum() const { return std::ranges::min(times); }

std::vector<Result> measure(std::span<const Case> cases, int rounds) {
  std::vector<Result> results;
  for (const Case& each : cases) results.push_back({&each, {}});
  std::vector<std::function<void()>> runs(cases.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < cases.size(); ++i) {
      set_thread_count(cases[i].threads);
      if (!runs[i]) runs[i] = cases[i].prepare();
      run_round(runs[i], results[i].times);
    }
  return results;
}

}  // namespace tern::bench
