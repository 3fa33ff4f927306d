#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/options.h"

namespace tern::reproduce {

/// The data set of an experiment's runs.
struct DataChoice {
  std::string name;    ///< as --data takes it
  std::string folder;  ///< of its files; empty where it has none

  /// The flags that say where it lies.
  std::vector<std::string> places() const;
};

/// What the person names, or the first of `allowed`, which is the paper's or nearest to it. An InputError where it is
/// none of them, or lacks --data-dir, or has no use for it; `experiment` is the name that it speaks of.
DataChoice choose_data(const char* experiment, const ExperimentOptions& options,
                       const std::vector<std::string>& allowed);

/// An InputError names an option that means nothing to `experiment`, which trains no network.
void check_trains_nothing(const char* experiment, const ExperimentOptions& options);

}  // namespace tern::reproduce
