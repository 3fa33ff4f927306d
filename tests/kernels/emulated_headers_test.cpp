#include <gtest/gtest.h>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/reduction.h"

namespace tern::cuda {
namespace {

// If these headers cannot be in one file, two files of one program may define one name differently.
TEST(CudaHeaders, CanMeetInOneFile) {
  EXPECT_EQ(kTile, kTileGroups * kWarp);
  EXPECT_EQ(kThreads % kWarp, 0);
}

}  // namespace
}  // namespace tern::cuda
