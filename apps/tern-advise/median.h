#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace tern {

/// Of what `number` makes of each of `items`, of which there is one at least; the upper of two middle ones.
template <class Items, class Number = std::identity>
double median(const Items& items, const Number& number = {}) {
  std::vector<double> values;
  for (const auto& item : items) values.push_back(std::invoke(number, item));
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tern
