#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tern/core/device.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/launch.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/wire.h"

namespace tern {

/// A rank's part in a job. If the ranks disagree or end, its communicator throws PeerError.
struct Job {
  int rank = 0, size = 1;
  Device device = {};                               ///< for the rank's tensors
  std::unique_ptr<Communicator> communicator = {};  ///< never null
  ClusterPlace place = {};
};

/// Joins the job of this process: the first call of a training program with several ranks. Its place comes from the
/// environment, as `find_place` reads it: from tern, torchrun, Open MPI, MPICH or other users of PMI, or Slurm. Without
/// a launcher, the job is this process alone. Returns when all ranks have joined, and prints on stderr which ranks it
/// waits for. The ranks of a machine share its cores: sets the number of threads of the calling thread. With
/// DeviceType::cuda, each rank of a machine takes a GPU of its own, and NCCL moves the tensors. Throws InputError that
/// names the variable if the place is not complete, and PeerError if the ranks do not join in time.
Job join(DeviceType device = DeviceType::cpu, const Environment& environment = process_environment);

/// How a rank connects to the others.
struct JoinOptions {
  Device device = {};
  bool nccl = false;  ///< NCCL moves CUDA tensors; otherwise they are copied to the CPU and sent
  Deadlines deadlines = {};
  std::optional<Wire> wire = {};  ///< unset: mac if rank 0's address names this machine, otherwise tls
  std::optional<Link> link = {};  ///< a network to imitate; all ranks are on one machine
  std::function<void(const std::string&)> note = {};  ///< as in TcpOptions
};

/// Joins the job at a known place, over TCP. If all ranks are on this machine, they share its token; otherwise the
/// token comes from the environment. Rank 0 may pass a listener that it made itself.
Job join(const ClusterPlace& place, const JoinOptions& options, std::optional<detail::Listener> listener = {});

}  // namespace tern
