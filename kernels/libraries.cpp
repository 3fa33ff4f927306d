#include "tern/kernels/libraries.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace tern::kernels {
namespace {

// Bits, since not every compiler reads and writes a struct atomically without a library of its own.
constexpr uint8_t kTf32 = 1, kDeterministic = 2, kDirect = 4;
constinit std::array<std::atomic<uint8_t>, kMaxCudaDevices + 1> rules_of_devices{};  // the last: the CPU's

std::atomic<uint8_t>& rules_of(Device device) {
  const bool cuda = device.type == DeviceType::cuda;
  return rules_of_devices[cuda ? static_cast<size_t>(device.index) : rules_of_devices.size() - 1];
}

}  // namespace

void set_library_rules(Device device, const LibraryRules& rules) {
  rules_of(device).store((rules.tf32 ? kTf32 : 0) | (rules.deterministic ? kDeterministic : 0) |
                         (rules.direct_convolutions ? kDirect : 0));
}
LibraryRules library_rules(Device device) {
  const uint8_t bits = rules_of(device).load();
  return {.tf32 = (bits & kTf32) != 0,
          .deterministic = (bits & kDeterministic) != 0,
          .direct_convolutions = (bits & kDirect) != 0};
}

}  // namespace tern::kernels
