#pragma once

#include <memory>

#include "tern/apps/trainer/settings.h"
#include "tern/data/loader.h"

namespace tern {

/// Batches of --batch-size for training; `data` must outlive the loader. An InputError where it has fewer images.
std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& settings, const Dataset& data);

/// Batches of --eval-batch-size, every image once, in order.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data);

}  // namespace tern
