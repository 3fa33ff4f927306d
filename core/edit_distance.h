#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <ranges>
#include <vector>

namespace tern {

/// The Levenshtein distance: the least number of insertions, deletions and substitutions from `a` to `b`.
template <std::ranges::random_access_range Sequence>
size_t edit_distance(const Sequence& a, const Sequence& b) {
  std::vector<size_t> row(std::ranges::size(b) + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (const auto& from : a) {
    size_t diagonal = row[0];
    ++row[0];
    for (size_t j = 0; const auto& to : b) {
      const size_t substituted = diagonal + (from != to);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
      ++j;
    }
  }
  return row.back();
}

}  // namespace tern
