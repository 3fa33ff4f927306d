#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tern {

enum class DeviceType : uint8_t { cpu, cuda };

/// Where a tensor lives.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda:0"
std::string to_string(Device device);
/// Reads "cpu", "cuda" or "cuda:N"; InputError on anything else.
Device parse_device(std::string_view text);

/// What a device's memory has done since the program began; bytes.
struct MemoryStatistics {
  int64_t system_allocations = 0;  ///< times memory was taken from the system
  int64_t in_use = 0;              ///< held by tensors now
  int64_t peak_in_use = 0;
  int64_t reserved = 0;  ///< in use, or cached for reuse
};

/// Memory of one device: thread-safe, lives for the whole program. The CPU's stands in core;
/// another device's folder hands its own over with `provide_device_backend`.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// At least `bytes` bytes, aligned to 64; contents undefined.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* memory, size_t bytes) noexcept = 0;
  /// Copies where at least one side is on this device; ordered with the device's kernels.
  virtual void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) = 0;
  virtual void fill_zero(void* memory, size_t bytes) = 0;
  /// Waits until everything queued on the device has ended.
  virtual void synchronize() = 0;
  virtual MemoryStatistics statistics() const = 0;
};

/// The backend of `device`; InputError where this build or machine has none.
DeviceBackend& device_backend(Device device);
void provide_device_backend(Device device, DeviceBackend& backend);

}  // namespace tern
