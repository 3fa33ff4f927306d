#pragma once

#include <nccl.h>

#include <string>

namespace tern::nccl {

/// NCCL's functions, under its names.
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

/// Loaded at the first call, so that programs start where NCCL is missing; an InputError says where it was looked for.
const Library& library();

/// Throws an Error "operation: NCCL: what it says" unless the call succeeded, or goes on.
void check_nccl(ncclResult_t result, const std::string& operation, ncclComm_t communicator = nullptr);

}  // namespace tern::nccl
