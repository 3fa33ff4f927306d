#pragma once

#include <memory>
#include <vector>

#include "tern/dist/comm/transport.h"

namespace tern {

inline constexpr int kMaxRanks = 64;

/// The transports of a job whose `size` ranks (1 to 64) are threads of this process, by rank. Messages are copied once,
/// from the sender's bytes into the receiver's. A transport that is destroyed has left the job.
std::vector<std::unique_ptr<Transport>> make_in_process(int size, const Deadlines& deadlines = {});

}  // namespace tern
