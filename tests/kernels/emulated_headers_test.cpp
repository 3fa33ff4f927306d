#include <gtest/gtest.h>

#include "tern/kernels/cuda/summation.h"
#include "tern/kernels/cuda/tile.h"
#include "tern/kernels/cuda/transpose.h"

namespace tern::cuda {
namespace {

TEST(CudaHeaders, CanMeetInOneFile) {  // or two files of one program would disagree on what a name is
  EXPECT_EQ(kTile, kTileGroups * kWarp);
  EXPECT_EQ(kTransposeTile % kTransposeRows, 0);
}

}  // namespace
}  // namespace tern::cuda
