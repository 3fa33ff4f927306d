#include "tern/kernels/operation_clock.h"

// An emulated device has no time of its own.

namespace tern {

std::unique_ptr<OperationClock> make_cuda_operation_clock(Device) { return make_operation_clock(Device{}); }

}  // namespace tern
