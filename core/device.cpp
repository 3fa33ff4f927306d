#include "tern/core/device.h"

#include <charconv>

#include "tern/core/cpu_memory.h"
#include "tern/core/cuda_device.h"
#include "tern/core/error.h"

namespace tern {
namespace {

thread_local const char* operation = "none";

}  // namespace

std::string to_string(Device device) { return device.type == DeviceType::cpu ? "cpu" : join({"cuda:", device.index}); }

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {DeviceType::cuda, 0};
  int index = -1;
  if (text.starts_with("cuda:")) {
    const auto digits = text.substr(5);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (status != std::errc{} || end != digits.data() + digits.size()) index = -1;
  }
  check_input(index >= 0 && index < kMaxCudaDevices, "device '", text, "': expected cpu, cuda or cuda:N");
  return {DeviceType::cuda, index};
}

DeviceBackend& device_backend(Device device) {
  return device.type == DeviceType::cpu ? cpu_memory() : cuda_device(device.index);
}

const char* last_operation() { return operation; }
void set_last_operation(const char* name) { operation = name; }

}  // namespace tern
