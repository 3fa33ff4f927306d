#include "tern/core/caching_backend.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

/// Blocks of a system that has any number of them and never gives one twice.
class EndlessMemory final : public CachingBackend {
 public:
  void copy(void*, Device, const void*, Device, size_t) override {}
  void fill_zero(void*, size_t) override {}
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload() override { return nullptr; }
  std::string name() const override { return "endless"; }

 private:
  void* take(size_t) override { return reinterpret_cast<void*>(next_ += 64); }
  void give_back(void*) noexcept override {}
  void refuse(size_t, const MemoryStatistics&) const override { throw std::bad_alloc(); }

  uintptr_t next_ = 0;
};

TEST(CachingBackend, KeepsTheBlocksOfRecordedWorkFromOtherWork) {
  EndlessMemory memory;
  void* before = memory.allocate(100);
  memory.deallocate(before, 100);

  memory.begin_recording();
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

  memory.begin_recording();
  EXPECT_EQ(memory.allocate(100), held) << "another recording may have it: replays never run at once";
  memory.end_recording();
}

}  // namespace
}  // namespace tern
