#pragma once

#include <optional>

#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/cluster_place.h"
#include "tern/apps/trainer/console.h"
#include "tern/apps/trainer/settings.h"

namespace tern {

/// Trains as the settings say: alone; with several workers as threads of this process, or as children that it
/// supervises; or as the one rank at `place`. Returns the exit code, or throws what ended it.
int launch(const Application& application, TrainSettings settings, const std::optional<ClusterPlace>& place,
           Console& console, char** argv);

}  // namespace tern
