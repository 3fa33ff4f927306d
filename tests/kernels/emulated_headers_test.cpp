#include <gtest/gtest.h>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/reduction.h"

namespace tern::cuda {
namespace {

TEST(CudaHeaders, CanMeetInOneFile) {  // or two files of one program would disagree on what a name is
  EXPECT_EQ(kTile, kTileGroups * kWarp);
  EXPECT_EQ(kThreads % kWarp, 0);
}

}  // namespace
}  // namespace tern::cuda
