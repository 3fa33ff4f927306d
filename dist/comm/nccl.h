#pragma once

#include <memory>
#include <string>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/communicator.h"

namespace tern {

/// "2.28.9", of the library that is loaded at the first call. An InputError says what is missing: NCCL in this build,
/// or on this machine.
std::string nccl_version();

struct NcclOptions {
  Device device = {DeviceType::cuda};  ///< this rank's alone
  Address master = {};                 ///< of rank 0: NCCL takes the network interface that leads there
  Deadlines deadlines = {};
};

/// A communicator that moves CUDA tensors of `device` by NCCL, GPU to GPU. What a training method says beside them
/// (tensors on the CPU, barriers) and all that holds ranks together go over `transport`, which is joined already: by it
/// the ranks agree on NCCL's id, on each kind of operation before its first use, and on the cause of a failure. Sums of
/// floats are not the same bits from run to run; a NaN may be lost in a maximum. Bytes are counted as ring algorithms
/// send them, since NCCL does not tell its choice. It does not encrypt or authenticate: a trusted network is needed.
/// The same InputError on all ranks where two share a GPU; a PeerError where they do not come together in time.
std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Transport> transport, const NcclOptions& options);

}  // namespace tern
