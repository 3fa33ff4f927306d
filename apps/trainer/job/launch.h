#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "tern/dist/comm/launch.h"
#include "tern/dist/comm/transport.h"
#include "tern/trainer/application.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Throws InputError with the first flag whose file or folder cannot be written, or read. Call it before anything takes
/// time. It leaves no file or folder behind.
void check_places(const TrainSettings& settings);

/// Trains as the settings say: one process; several workers as threads of this process; several workers as child
/// processes that this one supervises; or only the rank at `place`. Returns the exit code, or throws the error that
/// ended the training.
int launch(const Application& application, TrainSettings settings, const std::optional<ClusterPlace>& place,
           Console& console, char** argv);

/// Calls `body(rank)` for each of `ranks` on its own thread with `threads` compute threads, and waits for all. Rethrows
/// an error of one of them. Prefers a rank's own error to a PeerError, which only tells that another rank ended.
void run_rank_threads(int ranks, int threads, const std::function<void(int rank)>& body);
/// The same, with each rank's transport of an in-process job.
void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body,
                      const Deadlines& deadlines = {});

}  // namespace tern::trainer
