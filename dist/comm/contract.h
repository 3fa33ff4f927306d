#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern {

/// What all ranks of a job must have in common, in order: names ("lr") and values ("0.1").
using Contract = std::vector<std::pair<std::string, std::string>>;

/// Compares every rank's contract with rank 0's, before training. The first difference is the same PeerError on all
/// ranks: "rank 3: lr=0.01, rank 0: lr=0.1".
void compare_contracts(Communicator& communicator, const Contract& contract);

}  // namespace tern
