#pragma once

#include <memory>
#include <vector>

#include "tern/apps/trainer/line_writer.h"
#include "tern/apps/trainer/listener.h"

namespace tern {

/// Those that the flags ask for: progress on `out`, log, event files, curves. Opens their files.
std::vector<std::unique_ptr<Listener>> make_listeners(const TrainSettings& settings, LineWriter& out);

}  // namespace tern
