#pragma once

#include <functional>
#include <memory>

#include "tern/dist/transport.h"

namespace tern {

/// Runs `body` once for each of `ranks` as threads of this process, each with `threads` to compute by, and waits for
/// all. Rethrows what one of them threw: rather its own error than that of a peer which was left by it.
void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body);

}  // namespace tern
