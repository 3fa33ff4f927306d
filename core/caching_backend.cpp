#include "tern/core/caching_backend.h"

#include <algorithm>
#include <bit>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Rounds up to a size class. Up to 8·`alignment` bytes, classes are the multiples of `alignment`. Above that, there
/// are eight classes per power of two, which wastes at most 1/8 of a block.
size_t size_class(size_t bytes, size_t alignment) {
  if (bytes <= 8 * alignment) return std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* CachingBackend::allocate(size_t bytes) {
  const size_t size = size_class(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  void* memory = take_cached(recording_ != nullptr ? recording_->free_ : free_, size);
  if (!memory) memory = take_from_system(size);
  if (recording_ != nullptr) owners_[memory] = recording_;
  mark_used(memory, bytes, size);
  statistics_.in_use += static_cast<int64_t>(size);
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  return memory;
}

void CachingBackend::deallocate(void* memory, size_t bytes) noexcept {
  const size_t size = size_class(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  mark_used(memory, 0, size);
  statistics_.in_use -= static_cast<int64_t>(size);
  const auto owner = owners_.find(memory);
  (owner != owners_.end() ? owner->second->free_ : free_)[size].push_back(memory);
}

std::unique_ptr<CachingBackend::RecordedBlocks> CachingBackend::begin_recording() {
  std::lock_guard lock(mutex_);
  check(recording_ == nullptr, "record: work is being recorded already, expected one recording at a time");
  release_cached();  // frees the blocks that the same work used before the recording
  std::unique_ptr<RecordedBlocks> blocks(new RecordedBlocks(*this));
  recording_ = blocks.get();
  return blocks;
}

void CachingBackend::end_recording() {
  std::lock_guard lock(mutex_);
  recording_ = nullptr;
}

bool CachingBackend::recording() const {
  std::lock_guard lock(mutex_);
  return recording_ != nullptr;
}

CachingBackend::RecordedBlocks::~RecordedBlocks() {
  std::lock_guard lock(backend_.mutex_);
  if (backend_.recording_ == this) backend_.recording_ = nullptr;
  for (auto& [size, blocks] : free_) {
    auto& all = backend_.free_[size];
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  std::erase_if(backend_.owners_, [this](const auto& block) { return block.second == this; });
}

MemoryStatistics CachingBackend::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void* CachingBackend::take_cached(FreeLists& lists, size_t size) {
  const auto list = lists.find(size);
  if (list == lists.end() || list->second.empty()) return nullptr;
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
