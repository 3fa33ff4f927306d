#pragma once

#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/dist/communicator.h"

namespace tern {

/// Compares the parameters of all ranks, bit for bit, by a checksum each; counts as overhead. The same PeerError on all
/// ranks names the first rank that differs from the most.
void check_same_parameters(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step);

}  // namespace tern
