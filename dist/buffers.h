#pragma once

#include "tern/dist/communicator.h"
#include "tern/layers/module.h"

namespace tern {

/// The buffers that hold floating-point statistics, not counts.
std::vector<NamedBuffer> floating_buffers(Module& model);

/// Every rank's buffers (batch-norm statistics) become the root's. Counts as overhead.
void broadcast_buffers(Communicator& communicator, Module& model, int root);

}  // namespace tern
