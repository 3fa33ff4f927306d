#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::cuda {

/// One of cuDNN's engines for a graph, and how its knobs are set: what a plan is made from. A plain value.
struct Engine {
  int64_t index = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  ///< cudnnBackendKnobType_t, value

  friend bool operator==(const Engine&, const Engine&) = default;
};

/// "engine 17 2=1 14=0": the index, and each knob.
std::string to_string(const Engine& engine);
/// Nothing where `text` is not as `to_string` writes it.
std::optional<Engine> parse_engine(std::string_view text);

}  // namespace tern::cuda
