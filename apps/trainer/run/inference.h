#pragma once

#include "tern/trainer/application.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// --eval-only: how the model of --init or --resume does on the test images.
void evaluate_only(const Application& application, const TrainSettings& settings, LineWriter& out);

/// --predict: prints for each image its most likely classes with their probabilities. Reads all images before the
/// first answer.
void predict(const Application& application, const TrainSettings& settings);

}  // namespace tern::trainer
