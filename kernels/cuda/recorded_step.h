#pragma once

#include <cstdint>

namespace tern::cuda {

/// Where on the device a kernel that is being recorded finds the number of the training step it will run in; null where
/// this thread records nothing: then the step it is given holds.
const int64_t* recorded_step();

}  // namespace tern::cuda
