#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern {

/// The settings that all ranks of a job must share, in order: names ("lr") and values ("0.1").
using Contract = std::vector<std::pair<std::string, std::string>>;

/// Compares every rank's contract with rank 0's. Call it before training. If contracts differ, all ranks throw the same
/// PeerError with the first difference, for example "rank 3: lr=0.01, rank 0: lr=0.1; expected the same on all ranks".
void compare_contracts(Communicator& communicator, const Contract& contract);

}  // namespace tern
