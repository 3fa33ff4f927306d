#include "tern/kernels/libraries.h"

#include <array>
#include <atomic>

namespace tern::kernels {
namespace {

constinit std::array<std::atomic<LibraryRules>, kMaxCudaDevices> rules_of_devices{};

std::atomic<LibraryRules>& rules_of(Device device) { return rules_of_devices[static_cast<size_t>(device.index)]; }

}  // namespace

void set_library_rules(Device device, const LibraryRules& rules) { rules_of(device).store(rules); }
LibraryRules library_rules(Device device) { return rules_of(device).load(); }

}  // namespace tern::kernels
