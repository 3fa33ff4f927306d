#pragma once

#include <string_view>
#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/dist/comm/communicator.h"
#include "tern/layers/module.h"

namespace tern {

/// The parameter's gradient. Throws Error that names `method`, the parameter and the step if it has none.
Tensor needed_gradient(const NamedParameter& named, std::string_view method, int64_t step);

/// Compares a checksum of the parameters' bits across all ranks, on the overhead account. If they differ, all ranks
/// throw the same PeerError, which names the first rank that differs from the majority.
void check_same_parameters(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step);

/// Runs `check_same_parameters` after a round of `local_steps` steps that ends with `step`, if the count of steps
/// passes a multiple of `every` in that round. Never if `every` is 0.
void check_after_round(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step,
                       int64_t local_steps, int64_t every);

/// The floating-point buffers (statistics), without the counts.
std::vector<NamedBuffer> floating_buffers(Module& model);

/// Copies the root's buffers (batch-norm statistics) to every rank, on the overhead account.
void broadcast_buffers(Communicator& communicator, Module& model, int root);

}  // namespace tern
