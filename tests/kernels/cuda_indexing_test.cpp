#include <gtest/gtest.h>

#include "tern/kernels/cuda/indexing.h"

// Tests the index arithmetic that CUDA kernels share with the host. It needs no device.
namespace tern::cuda {
namespace {

TEST(CudaWalk, FindsWhatALoopNestVisits) {
  const Shape shape{3, 4, 5, 6};
  const Tensor y = Tensor::empty(shape, {.format = MemoryFormat::channels_last}), x = Tensor::empty({3, 1, 5, 6}),
               bias = Tensor::empty({4, 1, 1});
  const kernels::LoopNest<3> nest(
      shape, kernels::storage_order(y),
      {kernels::strides_in(y, shape), kernels::strides_in(x, shape), kernels::strides_in(bias, shape)});
  const Walk<3> walk(nest, "test");
  ASSERT_EQ(walk.count, shape.numel());
  for (int64_t outer = 0; outer < nest.outer; ++outer)
    for (int64_t inner = 0; inner < nest.inner; ++inner) {
      int64_t at[3] = {};
      walk.find(outer * nest.inner + inner, at);
      for (int array = 0; array < 3; ++array)
        ASSERT_EQ(at[array], nest.offsets(outer)[static_cast<size_t>(array)] + inner * nest.inner_step(array));
    }
  EXPECT_TRUE(walk.takes_packs(4));
  EXPECT_FALSE(walk.takes_packs(8)) << "4 channels";
}

TEST(CudaImages, VisitEveryElementOnceInStorageOrder) {
  for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last})
    for (const int width : {1, 4}) {
      if (width > 1 && format == MemoryFormat::row_major) continue;
      const Tensor x = Tensor::empty({2, 8, 3, 5}, {.format = format});
      const Images images("test", x, width);
      ASSERT_EQ(images.count, x.numel() / width);
      for (int64_t i = 0; i < images.count; ++i) {
        const auto [n, c, h, w] = images.place(i);
        ASSERT_EQ(images.offset(n, c, h, w), i * width) << n << c << h << w;
      }
    }
}

TEST(CudaPooling, KnowsWhichWindowsCoverAnElement) {
  for (const int window : {1, 2, 3, 5})
    for (const int stride : {1, 2, 4})
      for (int padding = 0; 2 * padding <= window; ++padding) {
        const int input = 11, output = (input + 2 * padding - window) / stride + 1;
        const PoolAxis axis{window, stride, padding, input, output};
        for (int h = 0; h < input; ++h)
          for (int i = 0; i < output; ++i) {
            const bool covers = axis.begin(i) <= h && h < axis.end(i);
            ASSERT_EQ(covers, axis.first_window(h) <= i && i <= axis.last_window(h))
                << "window " << window << " stride " << stride << " padding " << padding << " at " << h << ", " << i;
          }
      }
}

TEST(CudaDivider, DividesExactly) {
  constexpr uint32_t kMost = 1u << 31;
  for (const uint32_t divisor :
       {1u, 2u, 3u, 5u, 7u, 10u, 27u, 28u, 33u, 255u, 256u, 641u, 12345u, 65535u, 65537u, 1000003u, kMost - 1, kMost}) {
    const Divider by(divisor);
    for (const uint32_t n : {0u, 1u, 2u, 99u, 1000u, 65535u, 65536u, 999999u, 16777215u, 16777217u, kMost - 1, kMost,
                             kMost + 1, 0xfffffffeu, 0xffffffffu}) {
      ASSERT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      ASSERT_EQ(by.remainder(n), n % divisor) << n << " % " << divisor;
      const uint32_t multiple = n / divisor * divisor;
      ASSERT_EQ(by.quotient(multiple), n / divisor) << multiple << " / " << divisor;
      if (multiple == 0) continue;
      ASSERT_EQ(by.quotient(multiple - 1), n / divisor - 1) << multiple - 1 << " / " << divisor;
    }
  }
}

}  // namespace
}  // namespace tern::cuda
