#include "tern/core/error.h"
#include "tern/dist/nccl.h"
#include "tern/dist/nccl/library.h"

namespace tern {
namespace nccl {

void check_nccl(ncclResult_t result, const std::string& operation, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const std::string last = library().get_last_error(communicator);
  fail({operation, ": NCCL: ", library().get_error_string(result), last.empty() ? "" : " (" + last + ")"});
}

}  // namespace nccl

std::string nccl_version() {
  int version = 0;
  nccl::check_nccl(nccl::library().get_version(&version), "version");
  return join({version / 10000, ".", version / 100 % 100, ".", version % 100});
}

}  // namespace tern
