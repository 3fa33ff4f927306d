#pragma once

#include <functional>
#include <memory>

#include "tern/dist/comm/transport.h"

namespace tern {

/// Calls `body(rank)` for each of `ranks` on a thread of this process with `threads` to compute by, and waits for all.
/// Rethrows what one of them threw: rather its own error than that of a peer which was left by it.
void run_rank_threads(int ranks, int threads, const std::function<void(int rank)>& body);
/// The same with the rank's transport of an in-process job.
void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body);

}  // namespace tern
