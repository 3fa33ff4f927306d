#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tern {

/// One training run behind a table. A value.
struct Run {
  std::string name;                 ///< of its folder: "momentum-ternary-4-workers-seed-1"
  std::string program;              ///< stands beside this one: "train_lenet"
  std::vector<std::string> flags;   ///< all that shape the result
  std::vector<std::string> places;  ///< flags that say where its data lies
  int64_t steps = 0;
  std::vector<std::pair<std::string, std::string>> columns = {};  ///< what tells it from others: {"workers", "4"}, ...
};

/// How a run ended, as its log has it.
struct RunResult {
  double accuracy = 0, loss = 0;                                   ///< of the last evaluation; accuracy from 0 to 1
  double seconds = 0;                                              ///< of training
  std::optional<int64_t> bytes_sent_payload, bytes_sent_overhead;  ///< by rank 0, where workers trained together
};

/// Of the runs that have ended, by name.
using Results = std::map<std::string, RunResult>;

}  // namespace tern
