#pragma once

#include <nccl.h>

#include <string>

namespace tern::nccl {

/// NCCL's functions.
struct Library {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduce) reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
};

/// Loads NCCL at the first call, so that programs start without it. Throws InputError that tells which paths were
/// tried.
const Library& library();

/// Throws Error "operation: NCCL: NCCL's message" unless the call succeeded or is in progress.
void check_nccl(ncclResult_t result, const std::string& operation, ncclComm_t communicator = nullptr);

}  // namespace tern::nccl
