#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tern/core/device.h"
#include "tern/dist/comm/address.h"

namespace tern {

/// The place of a rank that something else has started: a launcher, a script, a person.
struct ClusterPlace {
  int rank = 0;
  int size = 1;
  int local_size = 1;       ///< ranks on this machine, which share its cores
  int local_rank = 0;       ///< among them
  Address master = {};      ///< where rank 0 listens
  uint32_t epoch = 0;       ///< restarts of the job before
  bool supervised = false;  ///< started by a Supervisor of this program
  std::string source = {};  ///< what told it: "torchrun (RANK, WORLD_SIZE)"
};

/// A variable of the environment, as std::getenv gives it.
using Environment = std::function<const char*(const char*)>;

/// Looks at, in this order: TERN_RANK and TERN_WORLD_SIZE; torchrun's variables, or those of other platforms of that
/// form; Open MPI's; MPICH's; Slurm's, under srun alone. The first that is there counts, and is nothing where a
/// launcher started a single rank. TERN_MASTER_ADDR and TERN_MASTER_PORT overrule what the variables say of rank 0's
/// address; ranks that are all on one machine meet on its loopback. An InputError names what is missing, unreadable or
/// in contradiction.
std::optional<ClusterPlace> find_place(const Environment& environment);

/// Counts all ranks as ranks of this machine if rank 0 listens on the loopback.
void count_local_ranks(ClusterPlace& place);

/// The GPU of a rank among those that it sees, `visible` of them: a launcher may show each rank its own alone.
Device gpu_of(const ClusterPlace& place, int visible);

/// The first host of a Slurm list: "node7" of "node[7-9,12],gpu1".
std::string first_host(const std::string& list);
/// Tasks on node `index` of a Slurm list: 2 on nodes 0 to 2 and 1 on node 3 of "2(x3),1".
int tasks_on_node(const std::string& list, int index);

}  // namespace tern
