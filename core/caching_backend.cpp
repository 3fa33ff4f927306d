#include "tern/core/caching_backend.h"

#include <algorithm>
#include <bit>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr size_t kLargeBytes = 256 << 10;  ///< blocks of more bytes are large, and so is each part of a segment
constexpr size_t kPageBytes = 4096;        ///< the sizes of parts are multiples of it
/// A segment has at least this size if the system has the memory. Blocks of one segment can join, those of two cannot.
constexpr size_t kSegmentBytes = 32 << 20;

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// Rounds up to a size class. Up to 8·`alignment` bytes, classes are the multiples of `alignment`. Above that, there
/// are eight classes per power of two, which wastes at most 1/8 of a block.
size_t size_class(size_t bytes, size_t alignment) {
  if (bytes <= 8 * alignment) return std::max(alignment, round_up(bytes, alignment));
  return round_up(bytes, std::bit_floor(bytes - 1) / 8);
}

}  // namespace

void* CachingBackend::allocate(size_t bytes) {
  std::lock_guard lock(mutex_);
  FreeBlocks& free = recording_ != nullptr ? recording_->free_ : free_;
  void* memory;
  size_t size;
  if (bytes > kLargeBytes) {
    const auto part = take_large(free, round_up(bytes + guard_bytes(), kPageBytes));
    memory = part->first;
    size = part->second.size;
  } else {
    size = size_class(bytes, kAlignment);
    memory = take_small(free, size);
  }
  mark_used(memory, bytes, size);
  statistics_.in_use += static_cast<int64_t>(size);
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  return memory;
}

void CachingBackend::deallocate(void* memory, size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  size_t size;
  if (bytes > kLargeBytes) {
    const auto part = parts_.find(static_cast<std::byte*>(memory));
    size = part->second.size;
    mark_used(memory, 0, size);
    free_large(owner(part->second.segment), part);
  } else {
    size = size_class(bytes, kAlignment);
    mark_used(memory, 0, size);
    owner(memory).small[size].push_back(memory);
  }
  statistics_.in_use -= static_cast<int64_t>(size);
}

std::shared_ptr<CachingBackend::RecordedBlocks> CachingBackend::begin_recording(
    std::shared_ptr<RecordedBlocks> earlier) {
  std::lock_guard lock(mutex_);
  check(recording_ == nullptr, "record: work is being recorded already, expected one recording at a time");
  release_cached();  // the recording takes memory of its own
  std::shared_ptr<RecordedBlocks> blocks =
      earlier ? std::move(earlier) : std::shared_ptr<RecordedBlocks>(new RecordedBlocks(*this));
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
  for (auto& [size, blocks] : free_.small) {
    auto& all = backend_.free_.small[size];
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  backend_.free_.large.merge(free_.large);
  std::erase_if(backend_.owners_, [this](const auto& block) { return block.second == this; });
}

MemoryStatistics CachingBackend::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void* CachingBackend::take_small(FreeBlocks& free, size_t size) {
  const auto list = free.small.find(size);
  if (list == free.small.end() || list->second.empty()) return take_from_system(size, size).first;
  void* memory = list->second.back();
  list->second.pop_back();
  return memory;
}

CachingBackend::Parts::iterator CachingBackend::take_large(FreeBlocks& free, size_t size) {
  Parts::iterator part;
  if (const auto fit = free.large.lower_bound({size, nullptr}); fit != free.large.end()) {
    part = parts_.find(fit->second);
    free.large.erase(fit);
  } else {
    const auto [segment, bytes] = take_from_system(std::max(size, kSegmentBytes), size);
    part = parts_.emplace(segment, Part{segment, bytes, true}).first;
    mark_used(segment, 0, bytes);
  }
  auto& [address, block] = *part;
  block.free = false;
  if (const size_t rest = block.size - size; rest > kLargeBytes) {
    parts_.emplace(address + size, Part{block.segment, rest, true});
    free.large.emplace(rest, address + size);
    block.size = size;
  }
  return part;
}

void CachingBackend::free_large(FreeBlocks& free, Parts::iterator part) noexcept {
  const auto joins = [&](Parts::iterator other) {
    return other != parts_.end() && other->second.free && other->second.segment == part->second.segment;
  };
  part->second.free = true;
  const auto absorb = [&](Parts::iterator left, Parts::iterator right) {
    left->second.size += right->second.size;
    parts_.erase(right);
  };
  if (const auto next = std::next(part); joins(next)) {
    free.large.erase({next->second.size, next->first});
    absorb(part, next);
  }
  if (part != parts_.begin() && joins(std::prev(part))) {
    const auto previous = std::prev(part);
    free.large.erase({previous->second.size, previous->first});
    absorb(previous, part);
    part = previous;
  }
  free.large.emplace(part->second.size, part->first);
}

std::pair<std::byte*, size_t> CachingBackend::take_from_system(size_t wanted, size_t least) {
  size_t size = wanted;
  void* memory = take(size);
  if (!memory && least < wanted) memory = take(size = least);
  if (!memory && recording_ == nullptr) {  // cudaFree waits for the device, which a capture forbids
    release_cached();
    memory = take(size);
  }
  if (!memory) refuse(size, statistics_);
  if (recording_ != nullptr) owners_[memory] = recording_;
  ++statistics_.system_allocations;
  statistics_.reserved += static_cast<int64_t>(size);
  return {static_cast<std::byte*>(memory), size};
}

void CachingBackend::release_cached() noexcept {
  const auto release = [&](void* memory, size_t size) {
    give_back(memory);
    statistics_.reserved -= static_cast<int64_t>(size);
  };
  for (auto& [size, blocks] : free_.small) {
    for (void* memory : blocks) release(memory, size);
    blocks.clear();
  }
  std::erase_if(free_.large, [&](const auto& free) {
    const auto part = parts_.find(free.second), next = std::next(part);
    const std::byte* const segment = part->second.segment;
    if (part->first != segment || (next != parts_.end() && next->second.segment == segment)) return false;
    release(part->first, part->second.size);
    parts_.erase(part);
    return true;
  });
}

CachingBackend::FreeBlocks& CachingBackend::owner(void* memory) noexcept {
  const auto recording = owners_.find(memory);
  return recording != owners_.end() ? recording->second->free_ : free_;
}

}  // namespace tern
