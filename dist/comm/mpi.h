#pragma once

#include <memory>
#include <string>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/launch.h"

namespace tern {

/// The name and version of the MPI library, for example "Open MPI v4.1.4". Throws InputError if this build has no MPI.
std::string mpi_version();

/// The place of this process in MPI's world. It holds no address, because MPI knows them all. The first call starts
/// MPI, once per process. Throws InputError if this build has no MPI, or if MPI lacks MPI_THREAD_MULTIPLE.
ClusterPlace mpi_place();

/// The exit code of an MPI job that ends by MPI_Abort.
inline constexpr int kMpiAborted = 3;

/// Makes the communicator of all processes of MPI's world, directly over MPI's collectives; one per process. All ranks
/// call it. Its destructor waits until all ranks leave, and ends MPI.
///
/// Float sums have MPI's order. All ranks get the same bits if each element of a sum is added up on one rank, or in the
/// same order on all: so do all algorithms of Open MPI. Payload is counted as TransportCommunicator sends it, because
/// MPI does not report its choice. An operation has at most 2^31 - 1 elements. CUDA tensors are copied to the CPU and
/// back.
///
/// A failure between ranks is no PeerError: a blocked MPI call cannot end in another way than with its process. A
/// watchdog on each rank compares the ranks' operations at each heartbeat. If a rank is silent for `dead_after`, if
/// ranks are in unlike operations, or if an operation takes longer than `operation`, one rank prints a line on stderr
/// that names rank and operation, and calls MPI_Abort with kMpiAborted. `abandon` does that, too. MPI encrypts nothing
/// and knows no token: who may join is the launcher's business.
std::unique_ptr<Communicator> make_mpi(const Deadlines& deadlines = {});

}  // namespace tern
