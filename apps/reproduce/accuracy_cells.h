#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/sample.h"

namespace tern {

// Cells of a table of accuracies, in percent; "–" where nothing has ended.

/// The mean, with the deviation of several.
std::string mean_cell(const Sample& sample);

/// Their mean, with the deviation of several, and how many of `seeds` they are where some are missing.
std::string accuracy_cell(const std::vector<double>& values, int64_t seeds);

/// `first` − `second`, of which neither is empty, with the standard error of a difference of independent means.
std::string difference_cell(const Sample& first, const Sample& second);

}  // namespace tern
