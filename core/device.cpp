#include "tern/core/device.h"

#include <array>
#include <atomic>
#include <charconv>

#include "tern/core/cpu_memory.h"
#include "tern/core/error.h"

namespace tern {
namespace {

constexpr int kMaxCudaDevices = 16;
constinit std::array<std::atomic<DeviceBackend*>, kMaxCudaDevices> cuda_backends{};

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
  if (device.type == DeviceType::cpu) return cpu_memory();
  auto* backend = cuda_backends[static_cast<size_t>(device.index)].load(std::memory_order_acquire);
  check_input(backend != nullptr, "device ", device, ": not available; this build or machine offers cpu");
  return *backend;
}

void provide_device_backend(Device device, DeviceBackend& backend) {
  check(device.type == DeviceType::cuda && device.index >= 0 && device.index < kMaxCudaDevices,
        "provide_device_backend: ", device, " is not a device another folder provides");
  cuda_backends[static_cast<size_t>(device.index)].store(&backend, std::memory_order_release);
}

}  // namespace tern
