#include "tern/dist/comm/nccl.h"
#include "tern/core/error.h"

namespace tern {
namespace {

[[noreturn]] void refuse() {
  fail_input(
      {"NCCL: this build has none; configure it with -DTERN_CUDA=ON where nccl.h is installed (package "
       "libnccl-dev, or pip's nvidia-nccl-cu13)"});
}

}  // namespace

std::string nccl_version() { refuse(); }

std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Transport>, const NcclOptions&) { refuse(); }

}  // namespace tern
