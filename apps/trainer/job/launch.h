#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "tern/dist/comm/launch.h"
#include "tern/dist/comm/transport.h"
#include "tern/trainer/application.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Throws an InputError that names the first flag whose file or folder cannot be written, or read: to be called before
/// anything takes time. Leaves no file or folder behind.
void check_places(const TrainSettings& settings);

/// Trains as the settings say: alone; with several workers as threads of this process, or as children that it
/// supervises; or as the one rank at `place`. Returns the exit code, or throws what ended it.
int launch(const Application& application, TrainSettings settings, const std::optional<ClusterPlace>& place,
           Console& console, char** argv);

/// Calls `body(rank)` for each of `ranks` on a thread of this process with `threads` to compute by, and waits for all.
/// Rethrows what one of them threw: rather its own error than that of a peer which was left by it.
void run_rank_threads(int ranks, int threads, const std::function<void(int rank)>& body);
/// The same with the rank's transport of an in-process job.
void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body);

}  // namespace tern::trainer
