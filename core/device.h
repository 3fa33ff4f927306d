#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tern {

enum class DeviceType : uint8_t { cpu, cuda };

inline constexpr int kMaxCudaDevices = 16;

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

/// Copies from the CPU that run beside a device's kernels, for batches made ahead. Used by one thread.
class Upload {
 public:
  virtual ~Upload() = default;
  /// Copies begun from now on wait until kernels issued before this call are done with their targets.
  virtual void follow() = 0;
  /// Begins to copy to the device; `source` may change on return.
  virtual void copy(void* target, const void* source, size_t bytes) = 0;
  /// Kernels issued from now on see every copy begun before.
  virtual void join() = 0;
};

/// Memory of one device: thread-safe, lives for the whole program. What it does is ordered with the device's kernels,
/// which run in the order in which all threads together issue them.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// At least `bytes` bytes, aligned to 64; contents undefined.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* memory, size_t bytes) noexcept = 0;
  /// Copies where at least one side is on this device. On return CPU memory may be read or changed.
  virtual void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) = 0;
  virtual void fill_zero(void* memory, size_t bytes) = 0;
  /// Waits until everything queued on the device has ended.
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Upload> make_upload() = 0;
  virtual MemoryStatistics statistics() const = 0;
  /// What the system calls the device: "NVIDIA H200".
  virtual std::string name() const = 0;
};

/// The backend of `device`; an InputError says why this build or machine has none.
DeviceBackend& device_backend(Device device);

/// The operation that this thread began last, for messages about memory; never null.
const char* last_operation();
void set_last_operation(const char* name);

/// The CPU's caching allocator. Thread-safe; lives for the whole program.
DeviceBackend& cpu_memory();

/// The backend of one CUDA device, made on first use. An InputError says what is missing: CUDA in this build, a driver,
/// the device, or code for its architecture.
DeviceBackend& cuda_device(int index);

/// How many this machine has, 1 or more; an InputError says why there are none.
int cuda_device_count();

}  // namespace tern
