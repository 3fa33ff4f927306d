#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tern/core/device.h"

namespace tern {

/// A DeviceBackend that caches freed blocks. A training step in steady state therefore allocates no memory from the
/// system. A freed block can be reused at once: this is correct if the device runs its work in the order in which it
/// was issued.
/// A small block waits in a list for the next block of its size class. Large blocks are parts of segments, which are
/// pieces of memory from the system: a block takes the smallest free part that holds it, leaves the rest free if that
/// is large too, and free neighbours join. So the memory of one operation serves another one that needs other sizes.
class CachingBackend : public DeviceBackend {
  struct Part {
    std::byte* segment;  ///< its first byte
    size_t size;         ///< in bytes
    bool free;
  };
  using Parts = std::map<std::byte*, Part>;  ///< by address, so neighbours in memory are neighbours here
  /// The free blocks of work that may use each other's memory.
  struct FreeBlocks {
    std::map<size_t, std::vector<void*>> small;          ///< by size in bytes
    std::set<std::pair<size_t, std::byte*>> large = {};  ///< free parts, smallest first
  };

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
    FreeBlocks free_;
  };

  void* allocate(size_t bytes) final;
  void deallocate(void* memory, size_t bytes) noexcept final;
  MemoryStatistics statistics() const final;

  /// Starts a recording: until `end_recording`, every allocated block belongs to the result. That is `earlier`, if it
  /// is given: then work of both recordings uses the same memory. Throws if a recording is in progress already.
  std::shared_ptr<RecordedBlocks> begin_recording(std::shared_ptr<RecordedBlocks> earlier = nullptr);
  void end_recording();
  bool recording() const;

 protected:
  static constexpr size_t kAlignment = 64;

  /// Allocates a block from the system. Returns nullptr if the system has no memory left.
  virtual void* take(size_t bytes) = 0;
  virtual void give_back(void* memory) noexcept = 0;
  /// Throws the error for a block of `bytes` that the system refused, even after the cached blocks were returned to it
  /// (unless work is being recorded).
  [[noreturn]] virtual void refuse(size_t bytes, const MemoryStatistics& statistics) const = 0;
  /// Bytes behind each large block that no work may use, for `mark_used` to mark.
  virtual size_t guard_bytes() const { return 0; }
  /// Marks the first `bytes` bytes of a block as in use, and the rest of its `size` bytes as not in use.
  virtual void mark_used(void* /*memory*/, size_t /*bytes*/, size_t /*size*/) noexcept {}

 private:
  void* take_small(FreeBlocks& free, size_t size);
  Parts::iterator take_large(FreeBlocks& free, size_t size);
  void free_large(FreeBlocks& free, Parts::iterator part) noexcept;
  /// Takes `wanted` bytes, or if the system refuses them, `least` bytes; if it refuses those too, gives back cached
  /// memory first. Returns the first byte and the number of bytes.
  std::pair<std::byte*, size_t> take_from_system(size_t wanted, size_t least);
  void release_cached() noexcept;
  /// The recording that owns what was taken from the system at `memory`, or else the free blocks of all other work.
  FreeBlocks& owner(void* memory) noexcept;

  mutable std::mutex mutex_;
  Parts parts_;  ///< of all segments
  FreeBlocks free_;
  std::unordered_map<void*, RecordedBlocks*> owners_;  ///< the small blocks and the segments that recordings own
  RecordedBlocks* recording_ = nullptr;                ///< the recording in progress, or null
  MemoryStatistics statistics_;
};

}  // namespace tern
