#include "tern/dist/comm/nccl/library.h"

namespace tern::nccl {

const Library& library() {
  static constexpr Library kEmulated = {
      ncclGetVersion,        ncclGetErrorString, ncclGetLastError, ncclGetUniqueId, ncclCommInitRankConfig,
      ncclCommGetAsyncError, ncclCommFinalize,   ncclCommDestroy,  ncclCommAbort,   ncclGroupStart,
      ncclGroupEnd,          ncclBroadcast,      ncclAllReduce,    ncclReduce,      ncclReduceScatter,
      ncclAllGather,         ncclSend,           ncclRecv};
  return kEmulated;
}

}  // namespace tern::nccl
