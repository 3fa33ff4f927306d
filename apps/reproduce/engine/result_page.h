#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/run_folder.h"

namespace tern::reproduce {

/// Markdown: the report so far under its title, how far it is, on what machine, and the exact commands: `command` made
/// it by those of `folders`, one a training run.
std::string result_page(const ExperimentEntry& entry, const ReproduceCommand& command,
                        const std::vector<RunFolder>& folders, const Results& results, const Report& report);

/// A line for every run, under a head; of a run that has not ended, what it will be.
std::string runs_csv(const std::vector<Run>& runs, const Results& results);

}  // namespace tern::reproduce
