#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tern/core/device.h"

namespace tern {

/// A DeviceBackend that keeps freed blocks in lists by size class, so that a training step in steady state takes
/// nothing from the system. A block is handed out again at once: right where the device runs its work in the order in
/// which it was issued.
class CachingBackend : public DeviceBackend {
  using FreeLists = std::map<size_t, std::vector<void*>>;  ///< by size

 public:
  /// Owns the blocks of work that was recorded and can run again at any time: while it lives, no other work gets them.
  class RecordedBlocks {
   public:
    /// From now on the blocks serve any work, and can be given back to the system.
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

  /// From here to `end_recording` every block that is taken belongs to the result. One recording at a time.
  std::unique_ptr<RecordedBlocks> begin_recording();
  void end_recording();
  bool recording() const;

 protected:
  static constexpr size_t kAlignment = 64;

  /// A block of the system's, or nullptr where it has none left.
  virtual void* take(size_t bytes) = 0;
  virtual void give_back(void* memory) noexcept = 0;
  /// Throws the error for a block that the system refused, although nothing cached was left.
  [[noreturn]] virtual void refuse(size_t bytes, const MemoryStatistics& statistics) const = 0;
  /// From now on a block's first `bytes` bytes are somebody's, and the rest of its `size` is nobody's.
  virtual void mark_used(void* /*memory*/, size_t /*bytes*/, size_t /*size*/) noexcept {}

 private:
  static void* take_cached(FreeLists& lists, size_t size);
  void* take_from_system(size_t size);
  void release_cached() noexcept;

  mutable std::mutex mutex_;
  FreeLists free_;
  std::unordered_map<void*, RecordedBlocks*> owners_;  ///< of the blocks that recordings own
  RecordedBlocks* recording_ = nullptr;                ///< that takes blocks now
  MemoryStatistics statistics_;
};

}  // namespace tern
