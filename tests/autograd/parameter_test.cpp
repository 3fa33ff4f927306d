#include "tern/autograd/parameter.h"

#include <gtest/gtest.h>

#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

TEST(CudaParameter, IsCopiedAsAnOperationReadsIt) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  Parameter parameter;
  Parameter* const all[] = {&parameter};
  parameter.set_value(Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{1, 2, 3, 4}).to(device));
  const Tensor x =
      Tensor::empty({3, 2, 4, 4}, {.dtype = DType::bf16, .device = device, .format = MemoryFormat::channels_last});
  EXPECT_FALSE(parameter.take_copy(parameter.value()).defined());
  copy_parameters(all);
  EXPECT_FALSE(parameter.take_copy(x).defined()) << "it was not wanted before";
  for (const double first : {1, 7}) {
    parameter.value().copy_from(Tensor::from<double>({1, 2, 1, 2}, {first, 2, 3, 4}).to(DType::f32).to(device));
    copy_parameters(all);
    const Tensor copy = parameter.take_copy(x);
    ASSERT_TRUE(copy.defined());
    EXPECT_EQ(copy.dtype(), DType::bf16);
    EXPECT_EQ(copy.format(), MemoryFormat::channels_last);
    expect_values(copy, {first, 2, 3, 4}, 0);
    EXPECT_FALSE(parameter.take_copy(x).defined()) << "it was given away";
  }
  copy_parameters(all);
  parameter.value().mark_written();
  EXPECT_FALSE(parameter.take_copy(x).defined()) << "it is of an earlier value";
  copy_parameters(all);
  copy_parameters(all);
  EXPECT_FALSE(parameter.take_copy(x).defined()) << "nobody took the one before";
}

}  // namespace
}  // namespace tern
