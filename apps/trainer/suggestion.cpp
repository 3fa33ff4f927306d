#include "tern/apps/trainer/suggestion.h"

#include <algorithm>
#include <numeric>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Levenshtein's distance: insertions, deletions and substitutions from `a` to `b`.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  size_t least = 1 + word.size() / 3;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance > least || (nearest && distance == least)) continue;
    nearest = &candidate;
    least = distance;
  }
  return nearest ? join({", did you mean '", *nearest, "'?"}) : "";
}

}  // namespace tern
