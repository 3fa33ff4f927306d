#include "tern/core/readback.h"

#include "tern/core/error.h"

namespace tern {

std::unique_ptr<Readback> make_readback(Device device) {
  fail_input({"readback: device ", device, ", and this build has no CUDA"});
}

}  // namespace tern
