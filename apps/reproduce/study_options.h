#pragma once

#include "tern/apps/reproduce/experiment.h"
#include "tern/core/error.h"

namespace tern {

/// An InputError names an option that means nothing to `experiment`, which trains no network.
inline void check_trains_nothing(const char* experiment, const ExperimentOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--data", !options.data.empty()},
                                                {"--data-dir", !options.data_dir.empty()},
                                                {"--iterations", options.iterations.has_value()},
                                                {"--seeds", options.seeds.has_value()},
                                                {"--workers", !options.workers.empty()}};
  for (const auto& [flag, found] : given)
    check_input(!found, flag, " would change nothing: ", experiment, " trains no network");
}

}  // namespace tern
