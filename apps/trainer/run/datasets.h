#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/loader.h"
#include "tern/data/transforms.h"
#include "tern/trainer/run/team.h"
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

/// The transform of `data`, if it has pictures: `training_transform`. Otherwise one that nobody uses.
Transform transform_for(const TrainSettings& settings, const Dataset& data);

/// The transform for training on the data set of --data with examples of shape `images`: its normalization and the
/// application's augmentation, unless --no-augmentation. Evaluation uses its `for_evaluation()`. Throws InputError if
/// --resize is too small.
Transform training_transform(const TrainSettings& settings, const ImageSpec& images);

/// Samples per step of each of `ranks` ranks: --local-batch-size, or a share of --batch-size. Throws InputError if the
/// ranks cannot share it equally.
int64_t samples_per_rank(const TrainSettings& settings, int ranks);

/// A loader of this rank's training batches; `data` must outlive it. Throws InputError if a batch is larger than its
/// share.
std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& settings, const Dataset& data, const Team& team,
                                                 ImageForm images = ImageForm::transformed);

/// A loader of training batches for batch-norm statistics: the same on every rank, each as large as a rank's batch, and
/// transformed as in evaluation.
std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& settings, const Dataset& data,
                                                    const Team& team);

/// A loader of this rank's test samples in batches of at most --eval-batch-size. All ranks together read every sample
/// once.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data, const Team& team);

}  // namespace tern::trainer
