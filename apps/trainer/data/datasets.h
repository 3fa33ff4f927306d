#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

/// The pictures that every application with ImageClassification offers. To add a set, add an entry in datasets.cpp.
const std::vector<DatasetEntry>& picture_datasets();

/// The data sets that --data accepts: the application's, or the pictures if `settings` come from no application.
std::span<const DatasetEntry> offered_datasets(const TrainSettings& settings);
/// The entry of --data. Throws InputError with the list of names if there is none.
const DatasetEntry& find_dataset(const TrainSettings& settings);
/// The same, but null if there is none.
const DatasetEntry* known_dataset(const TrainSettings& settings);

/// The entry of --data, completed from its folder and the flags.
DatasetEntry describe_dataset(const TrainSettings& settings);

/// Whether only loaded data tell the shape of the samples of --data. tern's pictures tell it before.
bool needs_data_to_describe(const TrainSettings& settings);

/// The data of a run. Ranks in one process share them.
struct RunData {
  std::shared_ptr<const Dataset> training, test;
  /// Of `training`, in eight hexadecimal digits. Empty without --workers and --checkpoint.
  std::string fingerprint = {};
};
RunData load_run_data(const TrainSettings& settings);
/// One split of the set of --data. Throws InputError if the set has no samples.
std::shared_ptr<const Dataset> load_split(const TrainSettings& settings, Split split);

/// The task of `settings`; ImageClassification if none was set.
std::shared_ptr<const Task> task_of(const TrainSettings& settings);

}  // namespace tern::trainer
