#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/options.h"

namespace tern::reproduce {

/// The data set of an experiment's runs.
struct DataChoice {
  std::string name;    ///< value of --data
  std::string folder;  ///< folder of its files; empty if it has none

  /// The flags that give the folder.
  std::vector<std::string> places() const;
};

/// The data set of --data, or else the first of `allowed`: the paper's, or the nearest to it. Throws InputError if it
/// is not allowed, if it needs --data-dir, or if --data-dir is given but not used. `experiment` is its name for the
/// message.
DataChoice choose_data(const char* experiment, const ExperimentOptions& options,
                       const std::vector<std::string>& allowed);

/// For an experiment that trains no network: throws InputError with the option if one is given that has no effect.
void check_trains_nothing(const char* experiment, const ExperimentOptions& options);

}  // namespace tern::reproduce
