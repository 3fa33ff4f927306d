#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/module.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Memory that a process can still take, in bytes.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string source;  ///< "its limit of address space (ulimit -v)"
};
/// The tightest limit of this process: its address space, or the memory that is free on this machine.
MemoryLimit memory_limit();

/// Bytes that the parameters, buffers and the optimizer's state of a built model need at least, of one rank if the
/// model is sharded among `ranks`. Gradients and activations come on top.
int64_t least_bytes(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, int ranks);

/// Throws InputError if a built model cannot fit into `limit`. The message tells what it needs, what is there, and, if
/// the model has one hidden layer, for how many workers it would fit as a sharded model. `cuts` are those of a sharded
/// model; else null.
void check_memory(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, const MemoryLimit& limit);

}  // namespace tern::trainer
