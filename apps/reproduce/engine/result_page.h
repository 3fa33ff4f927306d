#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/run_folder.h"

namespace tern::reproduce {

/// The result page in Markdown: the title, the report so far, the number of finished runs, the machine, and the exact
/// commands: `command`, and one training command for each of `folders`.
std::string result_page(const ExperimentEntry& entry, const ReproduceCommand& command,
                        const std::vector<RunFolder>& folders, const Results& results, const Report& report);

/// A CSV table with a header and one line per run. The result cells of an unfinished run are empty.
std::string runs_csv(const std::vector<Run>& runs, const Results& results);

}  // namespace tern::reproduce
