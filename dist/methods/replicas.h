#pragma once

#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/dist/comm/communicator.h"
#include "tern/layers/module.h"

namespace tern {

/// Compares the parameters of all ranks, bit for bit, by a checksum each; counts as overhead. The same PeerError on all
/// ranks names the first rank that differs from the most.
void check_same_parameters(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step);

/// The same after a round of `local_steps` steps that ends with `step`, if a multiple of `every` lies in it; 0: never.
void check_after_round(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step,
                       int64_t local_steps, int64_t every);

/// The buffers that hold floating-point statistics, not counts.
std::vector<NamedBuffer> floating_buffers(Module& model);

/// Every rank's buffers (batch-norm statistics) become the root's. Counts as overhead.
void broadcast_buffers(Communicator& communicator, Module& model, int root);

}  // namespace tern
