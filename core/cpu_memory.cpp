#include "tern/core/cpu_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr size_t kAlignment = 64;

/// Rounds up to one of eight sizes per power of two: at most 1/8 of a block is wasted.
size_t size_class(size_t bytes) {
  if (bytes <= 8 * kAlignment) return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

class CpuMemory final : public DeviceBackend {
 public:
  void* allocate(size_t bytes) override {
    const size_t size = size_class(bytes);
    std::lock_guard lock(mutex_);
    void* memory = take_cached(size);
    if (!memory) memory = take_from_system(size);
    statistics_.in_use += static_cast<int64_t>(size);
    statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
    return memory;
  }

  void deallocate(void* memory, size_t bytes) noexcept override {
    const size_t size = size_class(bytes);
    std::lock_guard lock(mutex_);
    statistics_.in_use -= static_cast<int64_t>(size);
    free_[size].push_back(memory);
  }

  void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) override {
    check(target_device.type == DeviceType::cpu && source_device.type == DeviceType::cpu, "copy: from ", source_device,
          " to ", target_device, " is not the CPU's to do");
    if (bytes != 0) std::memcpy(target, source, bytes);
  }

  void fill_zero(void* memory, size_t bytes) override {
    if (bytes != 0) std::memset(memory, 0, bytes);
  }

  void synchronize() override {}

  MemoryStatistics statistics() const override {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  void* take_cached(size_t size) {
    const auto list = free_.find(size);
    if (list == free_.end() || list->second.empty()) return nullptr;
    void* memory = list->second.back();
    list->second.pop_back();
    return memory;
  }

  void* take_from_system(size_t size) {
    void* memory = std::aligned_alloc(kAlignment, size);
    if (!memory) {
      release_cached();
      memory = std::aligned_alloc(kAlignment, size);
    }
    check(memory != nullptr, "allocate: the system refused ", size, " bytes; ", statistics_.in_use,
          " bytes are in use; a smaller batch needs less");
    ++statistics_.system_allocations;
    statistics_.reserved += static_cast<int64_t>(size);
    return memory;
  }

  void release_cached() {
    for (auto& [size, blocks] : free_) {
      for (void* memory : blocks) std::free(memory);
      statistics_.reserved -= static_cast<int64_t>(size * blocks.size());
      blocks.clear();
    }
  }

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
  MemoryStatistics statistics_;
};

}  // namespace

DeviceBackend& cpu_memory() {
  static auto& memory = *new CpuMemory;  // never destroyed: tensors in static objects may outlive any order
  return memory;
}

}  // namespace tern
