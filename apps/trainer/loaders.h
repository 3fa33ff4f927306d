#pragma once

#include <memory>

#include "tern/apps/trainer/settings.h"
#include "tern/apps/trainer/team.h"
#include "tern/data/loader.h"

namespace tern {

/// Images that each of `ranks` trains on in a step: its share of --batch-size, which is the total where gradients are
/// averaged at every step and each rank's own otherwise. An InputError where the ranks cannot share it equally.
int64_t images_per_rank(const TrainSettings& settings, int ranks);

/// This rank's batches for training; `data` must outlive the loader. An InputError where it has fewer images.
std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& settings, const Dataset& data, const Team& team,
                                                 bool with_images);

/// The same training batches on every rank, as evaluation sees them: for statistics that all agree on.
std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& settings, const Dataset& data);

/// Batches of --eval-batch-size at most: all ranks together every image once.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data, const Team& team);

}  // namespace tern
