#pragma once

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/networks/networks.h"
#include "tern/trainer/settings.h"

namespace tern::reproduce {

/// The settings that the network's program reads from the flags and places of a run.
TrainSettings settings_of(const networks::Network& network, const Run& run);

}  // namespace tern::reproduce
