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

TEST(CudaParameter, KeepsFiltersAsConvolutionsReadThem) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  const Values values = {1, 2, 3, 4, 5, 6, 7, 8};
  const Tensor filters = f64({2, 2, 1, 2}, values).to(DType::f32), matrix = f64({4, 2}, values).to(DType::f32);
  Parameter here, there, of_matrix;
  here.set_value(filters);
  there.set_value(filters.to(device));
  of_matrix.set_value(matrix.to(device));
  EXPECT_EQ(here.value().raw_data(), filters.raw_data()) << "on the CPU it is the tensor itself";
  EXPECT_EQ(there.value().format(), MemoryFormat::channels_last);
  EXPECT_EQ(of_matrix.value().format(), MemoryFormat::row_major);
  expect_values(there.value(), values, 0);
  const Tensor value = there.value();
  there.set_value(value);
  EXPECT_EQ(there.value().raw_data(), value.raw_data()) << "it is so already";

  Parameter* const all[] = {&there};
  const Tensor x = Tensor::empty({3, 2, 4, 4}, {.device = device, .format = MemoryFormat::channels_last});
  there.take_copy(x);
  copy_parameters(all);
  EXPECT_FALSE(there.take_copy(x).defined()) << "an operation in f32 reads the value itself";
}

}  // namespace
}  // namespace tern
