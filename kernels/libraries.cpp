#include "tern/kernels/libraries.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace tern::kernels {
namespace {

// Bits, since not every compiler reads and writes a struct atomically without a library of its own.
constexpr uint8_t kTf32 = 1, kDeterministic = 2;
constinit std::array<std::atomic<uint8_t>, kMaxCudaDevices> rules_of_devices{};

std::atomic<uint8_t>& rules_of(Device device) { return rules_of_devices[static_cast<size_t>(device.index)]; }

}  // namespace

void set_library_rules(Device device, const LibraryRules& rules) {
  rules_of(device).store((rules.tf32 ? kTf32 : 0) | (rules.deterministic ? kDeterministic : 0));
}
LibraryRules library_rules(Device device) {
  const uint8_t bits = rules_of(device).load();
  return {.tf32 = (bits & kTf32) != 0, .deterministic = (bits & kDeterministic) != 0};
}

}  // namespace tern::kernels
