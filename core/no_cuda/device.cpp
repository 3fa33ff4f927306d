#include "tern/core/cuda_device.h"
#include "tern/core/error.h"

namespace tern {

namespace {

[[noreturn]] void refuse(int index) {
  fail_input({"device ", Device{DeviceType::cuda, index},
              ": this build has no CUDA; `./dev build --cuda`, or CMake with -DTERN_CUDA=ON, makes one that has"});
}

}  // namespace

DeviceBackend& cuda_device(int index) { refuse(index); }
int cuda_device_count() { refuse(0); }

}  // namespace tern
