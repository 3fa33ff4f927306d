#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/module.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Ranks that take memory from the same place as this rank, with this rank.
struct RanksHere {
  int of_process = 1, of_machine = 1;
};

/// Memory that can still be taken.
struct MemoryLimit {
  int64_t bytes = 0;
  int ranks = 1;            ///< that share it
  std::string source = {};  ///< "free on this machine"
  bool of_machine = true;   ///< or of a container on it; false: of this process
};
/// The bytes that the control groups of a process, such as a container's, leave of their memory; nothing if none has a
/// limit. `mount` holds the groups of version 1 or 2 (/sys/fs/cgroup), `membership` is the text of /proc/PID/cgroup.
std::optional<int64_t> memory_of_groups(const std::filesystem::path& mount, const std::string& membership);

/// The limit that leaves the least to each rank: this process's address space, its control groups, or the memory that
/// is free on this machine.
MemoryLimit memory_limit(const RanksHere& here);

/// Whether `backward` may update parameters whose gradients come by blocks of rows, if their rules can: nobody else
/// needs these gradients.
bool updates_in_backward(const TrainSettings& settings, bool has_ranks);

/// Bytes that the parameters, gradients, buffers and the optimizer's state of a built model need at least, of one rank
/// if the model is sharded among `ranks`. Activations come on top. Without steps there are no gradients and no state.
int64_t least_bytes(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, int ranks);

/// Throws InputError if a built model cannot fit into `limit`, which all ranks that share it must measure before one of
/// them fills its model. The message tells what the model needs, what is there, and, if the model has one hidden layer,
/// for how many workers it would fit as a sharded model. `cuts` are those of a model that is sharded among `ranks`;
/// else null.
void check_memory(const TrainSettings& settings, Module& model, const SubnetCuts* cuts, int ranks,
                  const MemoryLimit& limit);

}  // namespace tern::trainer
