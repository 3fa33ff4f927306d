#include "tern/core/cuda_device.h"
#include "tern/core/error.h"

namespace tern {

DeviceBackend& cuda_device(int index) {
  fail_input(
      {"device ", Device{DeviceType::cuda, index}, ": this build has no CUDA; configure it with -DTERN_CUDA=ON"});
}

}  // namespace tern
