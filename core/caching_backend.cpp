#include "tern/core/caching_backend.h"

#include <algorithm>
#include <bit>

namespace tern {
namespace {

/// Rounds up to one of eight sizes per power of two: at most 1/8 of a block is wasted.
size_t size_class(size_t bytes, size_t alignment) {
  if (bytes <= 8 * alignment) return std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* CachingBackend::allocate(size_t bytes) {
  const size_t size = size_class(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  void* memory = take_cached(size);
  if (!memory) memory = take_from_system(size);
  statistics_.in_use += static_cast<int64_t>(size);
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  return memory;
}

void CachingBackend::deallocate(void* memory, size_t bytes) noexcept {
  const size_t size = size_class(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  statistics_.in_use -= static_cast<int64_t>(size);
  free_[size].push_back(memory);
}

MemoryStatistics CachingBackend::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void* CachingBackend::take_cached(size_t size) {
  const auto list = free_.find(size);
  if (list == free_.end() || list->second.empty()) return nullptr;
  void* memory = list->second.back();
  list->second.pop_back();
  return memory;
}

void* CachingBackend::take_from_system(size_t size) {
  void* memory = take(size);
  if (!memory) {
    release_cached();
    memory = take(size);
  }
  if (!memory) refuse(size, statistics_);
  ++statistics_.system_allocations;
  statistics_.reserved += static_cast<int64_t>(size);
  return memory;
}

void CachingBackend::release_cached() noexcept {
  for (auto& [size, blocks] : free_) {
    for (void* memory : blocks) give_back(memory);
    statistics_.reserved -= static_cast<int64_t>(size * blocks.size());
    blocks.clear();
  }
}

}  // namespace tern
