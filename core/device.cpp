#include "tern/core/device.h"

#include <sanitizer/asan_interface.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tern/core/caching_backend.h"
#include "tern/core/error.h"

namespace tern {
namespace {

constexpr bool kSanitized = std::string_view(TERN_SANITIZE).find("address") != std::string_view::npos;

thread_local const char* operation = "none";

/// Copies within CPU memory. Each copy is complete on return, so there is nothing to order.
class PlainCopies final : public Upload {
 public:
  void copy(void* target, std::span<const Part> parts) override {
    for (const auto& [offset, source, bytes] : parts)
      if (bytes != 0) std::memcpy(static_cast<std::byte*>(target) + offset, source, bytes);
  }
  void copy(void* target, std::shared_ptr<const void> source, size_t bytes) override {
    if (bytes != 0) std::memcpy(target, source.get(), bytes);
  }
  void run(const std::function<void()>& issue) override { issue(); }
  void follow() override {}
  void join() override {}
};

class CpuMemory final : public CachingBackend {
 public:
  void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) override {
    check(target_device.type == DeviceType::cpu && source_device.type == DeviceType::cpu, "copy: from ", source_device,
          " to ", target_device, ", expected CPU memory on both sides");
    if (bytes != 0) std::memcpy(target, source, bytes);
  }
  void fill_zero(void* memory, size_t bytes) override {
    if (bytes != 0) std::memset(memory, 0, bytes);
  }
  void synchronize() override {}
  std::string name() const override { return "CPU"; }
  std::unique_ptr<Upload> make_upload() override { return std::make_unique<PlainCopies>(); }
  std::shared_ptr<void> host_memory(size_t bytes) override {
    return {allocate(bytes), [this, bytes](void* memory) { deallocate(memory, bytes); }};
  }

 private:
  void* take(size_t bytes) override { return std::aligned_alloc(kAlignment, bytes); }
  void give_back(void* memory) noexcept override { std::free(memory); }
  size_t guard_bytes() const override { return kSanitized ? 4096 : 0; }
  void refuse(size_t bytes, const MemoryStatistics& statistics) const override {
    throw ResourceError(join({"allocate: the system refused ", bytes, " bytes; ", statistics.in_use,
                              " bytes are in use; a smaller batch or model needs less"}));
  }
  /// Tells AddressSanitizer which bytes are in use. Otherwise it would accept access to the rounded-up part of a block
  /// and to cached blocks. In such a build, new memory has no zero: floats are NaN, so that tests find an operation
  /// that does not write its whole output. Does nothing without AddressSanitizer.
  void mark_used(void* memory, size_t bytes, size_t size) noexcept override {
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(memory) + bytes, size - bytes);
    if constexpr (kSanitized) std::memset(memory, 0xff, bytes);
  }
};

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

DeviceBackend& cpu_memory() {
  static auto& memory = *new CpuMemory;  // never destroyed, because tensors in static objects may outlive it
  return memory;
}

}  // namespace tern
