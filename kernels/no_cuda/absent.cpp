#include "tern/core/error.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/operation_clock.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/recording.h"
#include "tern/kernels/transform_images.h"
#include "tern/kernels/watch_numbers.h"

namespace tern::kernels {

std::vector<std::pair<std::string, std::string>> cuda_libraries() { return {}; }

}  // namespace tern::kernels

namespace tern {

std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device) {
  fail({"profile: device ", device, ", and this build has no CUDA"});
}

void provide_cuda_kernels() {}

std::unique_ptr<Recording> record(Device device, const std::function<void()>&, const Recording*) {
  fail({"record: device ", device, ", expected one of CUDA in a build that has it"});
}

bool is_recording() { return false; }

}  // namespace tern

namespace tern::kernels {

void transform_images(const Tensor& pixels, const Tensor&, const Tensor&, const ImageMap&, Tensor&) {
  fail({"transform_images: device ", pixels.device(), ", and this build has no CUDA"});
}

void watch_numbers(std::span<const WatchedNumbers> watched, float, uint32_t) {
  fail({"watch_numbers: device ", watched.front().numbers.device(), ", and this build has no CUDA"});
}

}  // namespace tern::kernels
