#pragma once

#include <memory>
#include <vector>

#include "tern/dist/comm/transport.h"

namespace tern {

inline constexpr int kMaxRanks = 64;

/// The transports, by rank, of a job whose `size` ranks (1 to 64) are threads of this process. A message is copied
/// once, from the sender's bytes to the receiver's bytes. A rank leaves the job when its transport is destroyed.
std::vector<std::unique_ptr<Transport>> make_in_process(int size, const Deadlines& deadlines = {});

}  // namespace tern
