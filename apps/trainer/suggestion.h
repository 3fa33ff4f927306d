#pragma once

#include <string>
#include <vector>

namespace tern {

/// ", did you mean 'x'?" with the candidate nearest to `word` by edit distance; empty where none is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace tern
