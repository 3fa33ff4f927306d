#pragma once

#include "tern/apps/trainer/settings.h"

namespace tern {

/// Throws an InputError that names the first flag whose file or folder cannot be written, or read: to be called before
/// anything takes time. Leaves no file or folder behind.
void check_places(const TrainSettings& settings);

}  // namespace tern
