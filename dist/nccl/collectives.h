#pragma once

#include "tern/dist/communicator.h"
#include "tern/dist/nccl/library.h"

namespace tern::nccl {

/// Whether its parts go from rank to rank, one by one; NCCL has no call for it.
bool goes_directly(const CollectiveCall& call);

/// Puts an operation on tensors of the stream's device into the stream.
void enqueue(const CollectiveCall& call, int rank, int size, ncclComm_t communicator, cudaStream_t stream);

}  // namespace tern::nccl
