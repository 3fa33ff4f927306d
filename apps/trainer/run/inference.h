#pragma once

#include "tern/trainer/application.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// --eval-only: evaluates the model of --init or --resume on the test samples.
void evaluate_only(const Application& application, const TrainSettings& settings, LineWriter& out);

/// --predict: prints what the task predicts for the files.
void predict(const Application& application, const TrainSettings& settings);

}  // namespace tern::trainer
