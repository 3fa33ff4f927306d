#pragma once

#include <string>
#include <vector>

namespace tern {

/// Why this build cannot start MPI jobs; an empty string if it can.
inline std::string why_no_mpi() {
  if (*TERN_MPIRUN == '\0')
    return "this build has no MPI, or there is no mpirun (packages libopenmpi-dev, openmpi-bin)";
  return "";
}

/// The command that starts `command` as `ranks` processes. The variables are for Open MPI: root may start jobs, there
/// may be more ranks than cores, and ranks copy through shared memory, because containers often forbid to read another
/// process's memory.
inline std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> all = {"/usr/bin/env",
                                  "OMPI_ALLOW_RUN_AS_ROOT=1",
                                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                  "OMPI_MCA_rmaps_base_oversubscribe=1",
                                  "OMPI_MCA_btl=self,vader",
                                  "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                  TERN_MPIRUN,
                                  "-n",
                                  std::to_string(ranks)};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

}  // namespace tern
