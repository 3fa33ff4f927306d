#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tern/core/device.h"
#include "tern/dist/comm/address.h"

namespace tern {

/// The place of a rank in a job that a launcher, a script or a person started.
struct ClusterPlace {
  int rank = 0;
  int size = 1;
  int local_size = 1;   ///< ranks on this machine; they share its cores
  int local_rank = 0;   ///< index among the ranks on this machine
  Address master = {};  ///< address at which rank 0 listens
  uint32_t epoch = 0;   ///< earlier restarts of the job, the same on all its ranks
  /// Whether this machine's torchrun has started the ranks again. Other machines can differ. Unset: `epoch` counts.
  std::optional<bool> restarted_here = {};
  bool supervised = false;  ///< started by a Supervisor of this program
  std::string source = {};  ///< source of the place: "torchrun (RANK, WORLD_SIZE)"
};

/// Returns a variable of the environment, like std::getenv.
using Environment = std::function<const char*(const char*)>;
const char* process_environment(const char* name);

/// Finds the place of this rank in environment variables. It looks in this order: TERN_RANK and TERN_WORLD_SIZE;
/// torchrun's variables, which other platforms use, too; Open MPI's; MPICH's; Slurm's, only under srun. The first
/// source wins. A launcher that started a single rank does not count. Returns nothing if no source is left.
/// TERN_MASTER_ADDR and TERN_MASTER_PORT override rank 0's address from the other variables. If all ranks are on one
/// machine, they meet on its loopback address. Throws InputError that names the variable if one is missing, unreadable
/// or contradicts another.
std::optional<ClusterPlace> find_place(const Environment& environment = process_environment);

/// The place that a launcher of MPI programs gives this process, a single one included: Open MPI's, MPICH's or Slurm's
/// variables, in this order. It has no address, because MPI finds the ranks. Throws InputError as `find_place`.
std::optional<ClusterPlace> find_mpi_place(const Environment& environment = process_environment);

/// Counts all ranks as ranks of this machine if rank 0's address says so: see names_this_machine.
void count_local_ranks(ClusterPlace& place);

/// The GPU of a rank, out of the `visible` GPUs that it sees. A launcher may show each rank only its own GPU.
Device gpu_of(const ClusterPlace& place, int visible);

/// The first host of a Slurm list, for example "node7" for "node[7-9,12],gpu1".
std::string first_host(const std::string& list);
/// Tasks on node `index` of a Slurm list. For example, "2(x3),1" means 2 on nodes 0 to 2 and 1 on node 3.
int tasks_on_node(const std::string& list, int index);

}  // namespace tern
