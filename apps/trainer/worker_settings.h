#pragma once

#include <string>

#include "tern/apps/trainer/settings.h"
#include "tern/dist/comm/address.h"
#include "tern/dist/comm/transport.h"

namespace tern {

// The part of the settings that is about training together; as `validate` and `reason_without_effect`.

void validate_workers(const TrainSettings& settings);

std::string worker_reason_without_effect(const std::string& name, const TrainSettings& settings);

/// Of --bind HOST or HOST:PORT; port 0 where none is given.
Address listening_address(const TrainSettings& settings);

/// With --dead-after.
Deadlines rank_deadlines(const TrainSettings& settings);

}  // namespace tern
