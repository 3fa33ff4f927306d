#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/transport.h"
#include "tern/dist/exchange/plan.h"

namespace tern::advise {

/// Steps that `measure` takes at most, those that warm up among them.
inline constexpr int kMostMeasured = 200;

/// Medians of what `step()` returns, of each entry by itself and on the slowest rank, the same on every rank: of as
/// many steps as fit into `budget` seconds, but some at least, after a few that warm up. Ranks begin each together.
std::vector<double> measure(Communicator& c, double budget, const std::function<std::vector<double>()>& step);
/// Of the seconds that `step()` takes.
double measure_seconds(Communicator& c, double budget, const std::function<void()>& step);

double seconds_of(const std::function<void()>& work);

/// `run_rank_threads` with the rank's communicator: the ranks share this machine.
void side_by_side(int ranks, int threads, const std::function<void(Communicator&)>& body);

/// What a message costs over TCP between two ranks of this machine, for which there is no network: what a network
/// cannot undercut. Each of two measurements may take `budget` seconds.
LinkCost loopback_cost(double budget);

/// Of what `number` makes of each of `items`, of which there is one at least; the upper of two middle ones.
template <class Items, class Number = std::identity>
double median(const Items& items, const Number& number = {}) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(std::invoke(number, item));
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tern::advise
