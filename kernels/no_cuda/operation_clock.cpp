#include "tern/kernels/cuda_operation_clock.h"

#include "tern/core/error.h"

namespace tern {

std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device) {
  fail({"profile: device ", device, ", and this build has no CUDA"});
}

}  // namespace tern
