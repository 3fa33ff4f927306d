#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tern {

enum class DeviceType : uint8_t { cpu, cuda };

inline constexpr int kMaxCudaDevices = 16;

/// The device that holds a tensor.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

/// Returns "cpu" or for example "cuda:0".
std::string to_string(Device device);
/// Parses "cpu", "cuda" or "cuda:N". Throws InputError for anything else.
Device parse_device(std::string_view text);

/// Memory use of one device since the program began. Sizes are in bytes.
struct MemoryStatistics {
  int64_t system_allocations = 0;  ///< number of allocations from the system
  int64_t in_use = 0;              ///< held by tensors now
  int64_t peak_in_use = 0;
  int64_t reserved = 0;  ///< in use, or cached for reuse
};

/// Copies from the CPU to a device, and kernels that use them, which run at the same time as the device's other
/// kernels. Used for batches that are prepared ahead. Used by one thread.
class Upload {
 public:
  /// Memory of the CPU that goes to the byte `offset` of the target.
  struct Part {
    size_t offset;
    const void* source;
    size_t bytes;
  };

  virtual ~Upload() = default;
  /// Work that begins after this call waits until the kernels that were issued before it end.
  virtual void follow() = 0;
  /// Begins to copy `parts`, in rising order, to the device: small ones together, as one copy. What lies between two
  /// parts may change too. The caller may change the sources on return.
  virtual void copy(void* target, std::span<const Part> parts) = 0;
  /// The same from memory that DeviceBackend::host_memory gave: the device reads it without the CPU's help. Keeps
  /// `source` until the copy has ended. Nobody may change it until then.
  virtual void copy(void* target, std::shared_ptr<const void> source, size_t bytes) = 0;
  /// Runs `issue`. The kernels that it issues run after the copies that began before, beside the device's other
  /// kernels. They must not use memory that those write. `issue` must not allocate memory of the device.
  virtual void run(const std::function<void()>& issue) = 0;
  /// Kernels that are issued after this call wait for all work of this object that began before it.
  virtual void join() = 0;
};

/// The memory of one device. Thread-safe; lives for the whole program. Its operations are ordered with the device's
/// kernels. The kernels of all threads run in the order in which they are issued.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// Returns at least `bytes` bytes, aligned to 64 bytes. The contents are undefined.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* memory, size_t bytes) noexcept = 0;
  /// Copies `bytes` bytes. At least one side is on this device. On return, the caller may read or change the side in
  /// CPU memory.
  virtual void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) = 0;
  virtual void fill_zero(void* memory, size_t bytes) = 0;
  /// Waits until all work that was queued on the device has ended.
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Upload> make_upload() = 0;
  /// At least `bytes` bytes of CPU memory that an Upload reads fastest, aligned to 64 bytes. The contents are
  /// undefined. When the last owner lets go of it, it waits for the next call.
  virtual std::shared_ptr<void> host_memory(size_t bytes) = 0;
  virtual MemoryStatistics statistics() const = 0;
  /// The system's name of the device, for example "NVIDIA H200".
  virtual std::string name() const = 0;
};

/// Returns the backend of `device`. Throws InputError with the reason if this build or machine has none.
DeviceBackend& device_backend(Device device);

/// The operation that this thread began last, used in messages about memory. Never null.
const char* last_operation();
void set_last_operation(const char* name);

/// The CPU's caching allocator. Thread-safe; lives for the whole program.
DeviceBackend& cpu_memory();

/// Returns the backend of one CUDA device, which is made on first use. Throws InputError that says what is missing:
/// CUDA in this build, a driver, the device, or code for its architecture.
DeviceBackend& cuda_device(int index);

/// The number of CUDA devices of this machine, 1 or more. Throws InputError with the reason if there are none.
int cuda_device_count();

}  // namespace tern
