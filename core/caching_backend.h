#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tern/core/device.h"

namespace tern {

/// A DeviceBackend that caches freed blocks in lists by size class. A training step in steady state therefore allocates
/// no memory from the system. A freed block can be reused at once: this is correct if the device runs its work in the
/// order in which it was issued.
class CachingBackend : public DeviceBackend {
  using FreeLists = std::map<size_t, std::vector<void*>>;  ///< free blocks by size in bytes

 public:
  /// Owns the memory blocks of recorded work. That work can run again at any time, so no other work gets these blocks
  /// while this object lives.
  class RecordedBlocks {
   public:
    /// After this call, any work can use the blocks, and they can be returned to the system.
    ~RecordedBlocks();
    RecordedBlocks(const RecordedBlocks&) = delete;
    RecordedBlocks& operator=(const RecordedBlocks&) = delete;

   private:
    friend class CachingBackend;
    explicit RecordedBlocks(CachingBackend& backend) : backend_(backend) {}

    CachingBackend& backend_;
    FreeLists free_;
  };

  void* allocate(size_t bytes) final;
  void deallocate(void* memory, size_t bytes) noexcept final;
  MemoryStatistics statistics() const final;

  /// Starts a recording: until `end_recording`, every allocated block belongs to the result. Throws if a recording is
  /// in progress already.
  std::unique_ptr<RecordedBlocks> begin_recording();
  void end_recording();
  bool recording() const;

 protected:
  static constexpr size_t kAlignment = 64;

  /// Allocates a block from the system. Returns nullptr if the system has no memory left.
  virtual void* take(size_t bytes) = 0;
  virtual void give_back(void* memory) noexcept = 0;
  /// Throws the error for a block of `bytes` that the system refused even after the cached blocks were returned to it.
  [[noreturn]] virtual void refuse(size_t bytes, const MemoryStatistics& statistics) const = 0;
  /// Marks the first `bytes` bytes of a block as in use, and the rest of its `size` bytes as not in use.
  virtual void mark_used(void* /*memory*/, size_t /*bytes*/, size_t /*size*/) noexcept {}

 private:
  static void* take_cached(FreeLists& lists, size_t size);
  void* take_from_system(size_t size);
  void release_cached() noexcept;

  mutable std::mutex mutex_;
  FreeLists free_;
  std::unordered_map<void*, RecordedBlocks*> owners_;  ///< the blocks that recordings own
  RecordedBlocks* recording_ = nullptr;                ///< the recording in progress, or null
  MemoryStatistics statistics_;
};

}  // namespace tern
