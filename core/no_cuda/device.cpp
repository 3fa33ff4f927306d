#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/core/readback.h"

namespace tern {

namespace {

[[noreturn]] void refuse(int index) {
  fail_input({"device ", Device{DeviceType::cuda, index},
              ": this build has no CUDA; `./dev build --cuda`, or CMake with -DTERN_CUDA=ON, makes one that has"});
}

}  // namespace

DeviceBackend& cuda_device(int index) { refuse(index); }
int cuda_device_count() { refuse(0); }

std::unique_ptr<Readback> make_readback(Device device) {
  fail_input({"readback: device ", device, ", and this build has no CUDA"});
}

}  // namespace tern
