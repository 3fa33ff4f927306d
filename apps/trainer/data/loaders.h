#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/loader.h"
#include "tern/data/transforms.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

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
                                                 ImageForm images = ImageForm::transformed,
                                                 std::shared_ptr<const std::vector<int64_t>> labels = {});

/// A loader of training batches for batch-norm statistics: the same on every rank, each as large as a rank's batch, and
/// transformed as in evaluation.
std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& settings, const Dataset& data,
                                                    const Team& team);

/// A loader of this rank's test samples in batches of at most --eval-batch-size. All ranks together read every sample
/// once.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data, const Team& team);

}  // namespace tern::trainer
