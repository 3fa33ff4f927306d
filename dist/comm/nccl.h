#pragma once

#include <memory>
#include <string>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/communicator.h"

namespace tern {

/// The version of the NCCL library, for example "2.28.9". The first call loads the library. Throws InputError if NCCL
/// is missing in this build or on this machine.
std::string nccl_version();

/// What make_nccl needs beside a transport.
struct NcclOptions {
  Device device = {DeviceType::cuda};  ///< no other rank uses it
  Address master = {};                 ///< address of rank 0; NCCL uses the network interface towards it
  Deadlines deadlines = {};
};

/// Makes a communicator that moves CUDA tensors of `device` with NCCL, from GPU to GPU. Operations on CPU tensors and
/// barriers go over `transport`, which has joined the job already. Over it the ranks also agree on NCCL's id, on each
/// kind of operation before its first use, and on the cause of a failure. Float sums may have different bits from run
/// to run, and a maximum may lose a NaN. Bytes are counted as TransportCommunicator sends them, because NCCL does not
/// report its choice. NCCL does not encrypt or authenticate, so it needs a trusted network. If two ranks share a GPU,
/// all ranks throw the same InputError. Throws PeerError if the ranks do not connect in time.
std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Transport> transport, const NcclOptions& options);

}  // namespace tern
