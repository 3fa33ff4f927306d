#include "tern/core/caching_backend.h"

#include <gtest/gtest.h>

#include <new>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Acts as a system with `bytes` bytes of memory. Its addresses are numbers that only increase.
class CountedMemory final : public CachingBackend {
 public:
  explicit CountedMemory(size_t bytes) : left_(bytes) {}
  void copy(void*, Device, const void*, Device, size_t) override {}
  void fill_zero(void*, size_t) override {}
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload() override { return nullptr; }
  std::shared_ptr<void> host_memory(size_t) override { return nullptr; }
  std::string name() const override { return "counted"; }

 private:
  void* take(size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    auto* memory = reinterpret_cast<void*>(next_);
    next_ += bytes;
    sizes_[memory] = bytes;
    return memory;
  }
  void give_back(void* memory) noexcept override { left_ += sizes_[memory]; }
  void refuse(size_t, const MemoryStatistics&) const override { throw std::bad_alloc(); }

  uintptr_t next_ = 64;
  size_t left_;
  std::map<void*, size_t> sizes_;
};

TEST(CachingBackend, KeepsTheBlocksOfRecordedWorkFromOtherWork) {
  CountedMemory memory(1 << 20);
  void* before = memory.allocate(100);
  memory.deallocate(before, 100);

  const auto blocks = memory.begin_recording();
  void* held = memory.allocate(100);
  void* passing = memory.allocate(100);
  EXPECT_NE(held, before) << "the block that is free now may be another's when a replay writes there";
  memory.deallocate(passing, 100);
  EXPECT_EQ(memory.allocate(100), passing) << "within what is recorded a block serves again";
  memory.deallocate(passing, 100);
  memory.end_recording();

  EXPECT_NE(memory.allocate(100), passing) << "a replay would write into other work's tensor";
  memory.deallocate(held, 100);
  EXPECT_NE(memory.allocate(100), held) << "given back long after";
}

TEST(CachingBackend, KeepsTheBlocksOfTwoRecordingsApart) {
  CountedMemory memory(1 << 20);
  const auto first = memory.begin_recording();
  void* scratch = memory.allocate(100);
  memory.deallocate(scratch, 100);
  memory.end_recording();

  auto second = memory.begin_recording();
  EXPECT_NE(memory.allocate(100), scratch) << "a replay of the first would write into the second's output";
  EXPECT_THROW(memory.begin_recording(), Error) << "two at a time";
  second.reset();
  EXPECT_FALSE(memory.recording()) << "given up on the way";
}

TEST(CachingBackend, GivesALaterRecordingTheBlocksThatAnEarlierOneHasFree) {
  CountedMemory memory(1 << 20);
  auto first = memory.begin_recording();
  void* output = memory.allocate(100);
  void* scratch = memory.allocate(100);
  memory.deallocate(scratch, 100);
  memory.end_recording();

  auto second = memory.begin_recording(first);
  EXPECT_EQ(memory.allocate(100), scratch);
  EXPECT_NE(memory.allocate(100), output);
  memory.end_recording();
  EXPECT_FALSE(memory.recording());
  first.reset();
  memory.deallocate(output, 100);
  EXPECT_NE(memory.allocate(100), output) << "the later recording keeps the blocks of both";
}

TEST(CachingBackend, GivesTheBlocksOfAGoneRecordingToOtherWork) {
  CountedMemory memory(512);
  auto blocks = memory.begin_recording();
  void* held = memory.allocate(256);
  void* scratch = memory.allocate(256);
  memory.deallocate(scratch, 256);
  memory.end_recording();
  EXPECT_THROW(memory.allocate(256), std::bad_alloc) << "a replay may write to both at any time";

  blocks.reset();
  EXPECT_EQ(memory.allocate(256), scratch);
  memory.deallocate(held, 256);
  memory.deallocate(scratch, 256);
  EXPECT_NO_THROW(memory.allocate(512)) << "what is cached is given back before memory is refused";
  EXPECT_EQ(memory.statistics().reserved, 512);
}

// A device waits when memory is given back, and it must not wait within a recording.
TEST(CachingBackend, GivesNothingBackToTheSystemWithinARecording) {
  CountedMemory memory(512);
  void* const earlier = memory.allocate(256);
  const auto blocks = memory.begin_recording();
  memory.allocate(256);
  memory.deallocate(earlier, 256);
  EXPECT_THROW(memory.allocate(256), std::bad_alloc);
  memory.end_recording();
  EXPECT_EQ(memory.allocate(256), earlier);
}

constexpr size_t kMiB = 1 << 20;

std::byte* address(void* memory) { return static_cast<std::byte*>(memory); }

TEST(CachingBackend, CutsLargeBlocksFromFreeMemory) {
  CountedMemory memory(4 * kMiB);
  void* const whole = memory.allocate(4 * kMiB);
  memory.deallocate(whole, 4 * kMiB);
  void* const first = memory.allocate(kMiB);
  void* const second = memory.allocate(2 * kMiB);
  void* const third = memory.allocate(kMiB);
  EXPECT_EQ(first, whole);
  EXPECT_EQ(address(second), address(first) + kMiB);
  EXPECT_EQ(address(third), address(second) + 2 * kMiB);
  EXPECT_EQ(memory.statistics().system_allocations, 1);
  EXPECT_EQ(memory.statistics().in_use, 4 * kMiB);

  memory.deallocate(first, kMiB);
  memory.deallocate(third, kMiB);
  EXPECT_THROW(memory.allocate(2 * kMiB), std::bad_alloc) << "a block in use lies between the free ones";
  memory.deallocate(second, 2 * kMiB);
  EXPECT_EQ(memory.allocate(4 * kMiB), whole) << "free neighbours join on both sides";
}

TEST(CachingBackend, TakesLargeBlocksFromTheSystemTogether) {
  CountedMemory memory(100 * kMiB);
  void* const first = memory.allocate(kMiB);
  void* const second = memory.allocate(2 * kMiB);
  EXPECT_EQ(address(second), address(first) + kMiB);
  EXPECT_EQ(memory.statistics().system_allocations, 1);
  memory.deallocate(first, kMiB);
  memory.deallocate(second, 2 * kMiB);
  EXPECT_EQ(memory.allocate(20 * kMiB), first);
}

TEST(CachingBackend, KeepsItsCacheIfTheSystemHasNoWholeSegment) {
  CountedMemory memory(2 * kMiB);
  void* const small = memory.allocate(100);
  memory.deallocate(small, 100);
  memory.allocate(kMiB);
  EXPECT_EQ(memory.allocate(100), small);
}

TEST(CachingBackend, TakesTheSmallestFreeMemoryThatHoldsALargeBlock) {
  CountedMemory memory(8 * kMiB);
  void* const large = memory.allocate(4 * kMiB);
  void* const middle = memory.allocate(2 * kMiB);
  memory.deallocate(large, 4 * kMiB);
  memory.deallocate(middle, 2 * kMiB);
  EXPECT_EQ(memory.allocate(kMiB + kMiB / 2), middle);
  EXPECT_EQ(memory.allocate(3 * kMiB), large);
  EXPECT_EQ(memory.statistics().reserved, 6 * kMiB);
}

TEST(CachingBackend, JoinsNoMemoryThatTheSystemGaveInPieces) {
  CountedMemory memory(2 * kMiB);  // neighbours by address, but each is given back alone
  void* const first = memory.allocate(kMiB);
  void* const second = memory.allocate(kMiB);
  memory.deallocate(first, kMiB);
  memory.deallocate(second, kMiB);
  EXPECT_NE(memory.allocate(2 * kMiB), first) << "both are given back before memory is refused";
  EXPECT_EQ(memory.statistics().reserved, 2 * kMiB);
}

TEST(CachingBackend, KeepsWhatIsPartlyInUse) {
  CountedMemory memory(4 * kMiB);
  memory.deallocate(memory.allocate(3 * kMiB), 3 * kMiB);
  void* const held = memory.allocate(kMiB);
  EXPECT_THROW(memory.allocate(3 * kMiB), std::bad_alloc);
  memory.deallocate(held, kMiB);
  EXPECT_NO_THROW(memory.allocate(4 * kMiB)) << "all of it is free";
}

TEST(CachingBackend, KeepsLargeBlocksOfRecordedWorkFromOtherWork) {
  CountedMemory memory(4 * kMiB);
  auto blocks = memory.begin_recording();
  void* const scratch = memory.allocate(2 * kMiB);
  memory.deallocate(scratch, 2 * kMiB);
  void* const held = memory.allocate(kMiB);
  EXPECT_EQ(held, scratch) << "within what is recorded, memory serves again";
  memory.end_recording();
  void* const other = memory.allocate(kMiB);
  EXPECT_NE(other, address(scratch) + kMiB) << "a replay would write into other work's tensor";
  blocks.reset();
  EXPECT_EQ(memory.allocate(kMiB), address(scratch) + kMiB);
  memory.deallocate(held, kMiB);
  EXPECT_EQ(memory.allocate(kMiB), held) << "given back after the recording is gone";
}

}  // namespace
}  // namespace tern
