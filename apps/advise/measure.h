#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/transport.h"
#include "tern/dist/exchange/plan.h"

namespace tern::advise {

/// Most steps that `measure` takes, with the warm-up steps.
inline constexpr int kMostMeasured = 200;

/// Returns the medians of what `step()` returns: each entry by itself, on the slowest rank, the same on every rank.
/// Takes as many steps as fit into `budget` seconds, but at least a few, after warm-up steps. All ranks start each step
/// together.
std::vector<double> measure(Communicator& c, double budget, const std::function<std::vector<double>()>& step);
/// The same for the seconds that `step()` takes.
double measure_seconds(Communicator& c, double budget, const std::function<void()>& step);

double seconds_of(const std::function<void()>& work);

/// `run_rank_threads` with a communicator for each rank. All ranks are on this machine.
void side_by_side(int ranks, int threads, const std::function<void(Communicator&)>& body);

/// Measures the cost of a TCP message between two ranks of this machine. No network can be cheaper. Each of the two
/// measurements takes up to `budget` seconds.
LinkCost loopback_cost(double budget);

/// The median of `number(item)` over `items`, which must not be empty. Of an even number, the upper of the two middle
/// ones.
template <class Items, class Number = std::identity>
double median(const Items& items, const Number& number = {}) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(std::invoke(number, item));
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tern::advise
