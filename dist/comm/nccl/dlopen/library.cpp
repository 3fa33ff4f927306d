#include <dlfcn.h>

#include <cstdlib>

#include "tern/core/error.h"
#include "tern/dist/comm/nccl/library.h"

namespace tern::nccl {
namespace {

/// Loads NCCL from the system's search path, else from the path that the build found, for example a pip wheel's folder.
void* open() {
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
  if (void* handle = ::dlopen("libnccl.so.2", kMode)) return handle;
  const std::string missing = ::dlerror();
  if (void* handle = ::dlopen(TERN_NCCL_LIBRARY, kMode)) return handle;
  fail_input({"NCCL: ", missing,
              "; expected it in a folder of LD_LIBRARY_PATH, or at " TERN_NCCL_LIBRARY
              " (package libnccl2, or pip's nvidia-nccl-cu13)"});
}

/// Finds functions in the loaded library.
class Symbols {
 public:
  template <class F>
  void find(const char* name, F*& function) const {
    function = reinterpret_cast<F*>(::dlsym(handle_, name));
    check_input(function != nullptr, "NCCL: the library that was found has no ", name,
                ", expected version 2.14 or newer");
  }

 private:
  void* handle_ = open();
};

Library load() {
  // Switches off NCCL's status service (RAS), because it listens on a port of this machine.
  ::setenv("NCCL_RAS_ENABLE", "0", 0);
  // Otherwise a recording may wait for the other ranks, and they may have failed to record.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 1);
  const Symbols symbols;
  Library found;
  symbols.find("ncclGetVersion", found.get_version);
  symbols.find("ncclGetErrorString", found.get_error_string);
  symbols.find("ncclGetLastError", found.get_last_error);
  symbols.find("ncclGetUniqueId", found.get_unique_id);
  symbols.find("ncclCommInitRankConfig", found.comm_init_rank_config);
  symbols.find("ncclCommGetAsyncError", found.comm_get_async_error);
  symbols.find("ncclCommFinalize", found.comm_finalize);
  symbols.find("ncclCommDestroy", found.comm_destroy);
  symbols.find("ncclCommAbort", found.comm_abort);
  symbols.find("ncclGroupStart", found.group_start);
  symbols.find("ncclGroupEnd", found.group_end);
  symbols.find("ncclBroadcast", found.broadcast);
  symbols.find("ncclAllReduce", found.all_reduce);
  symbols.find("ncclReduce", found.reduce);
  symbols.find("ncclReduceScatter", found.reduce_scatter);
  symbols.find("ncclAllGather", found.all_gather);
  symbols.find("ncclSend", found.send);
  symbols.find("ncclRecv", found.receive);
  return found;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

}  // namespace tern::nccl
