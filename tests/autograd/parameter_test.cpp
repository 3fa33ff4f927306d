#include "tern/autograd/parameter.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tern/kernels/elementwise.h"
#include "tern/kernels/recording.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

/// Filters on a GPU, and images that an operation reads beside them.
struct CudaParameter : testing::Test {
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
    parameter.set_value(filters(1));
    images = Tensor::empty({3, 2, 4, 4}, {DType::bf16, kGpu, MemoryFormat::channels_last});
  }
  static Tensor filters(double first) {
    return f64({1, 2, 1, 2}, {first, 2, 3, 4}).to(DType::f32).to(kGpu).to(MemoryFormat::channels_last);
  }
  void copy() { copy_parameters(std::vector{&parameter}); }
  void expect_copy(double first) {
    const Tensor copy = parameter.copy_for(images);
    ASSERT_TRUE(copy.defined());
    EXPECT_EQ(copy.dtype(), DType::bf16);
    EXPECT_EQ(copy.format(), MemoryFormat::channels_last);
    expect_values(copy, {first, 2, 3, 4}, 0);
  }

  static constexpr Device kGpu{DeviceType::cuda, 0};
  Parameter parameter;
  Tensor images;
};

TEST_F(CudaParameter, IsCopiedAsAnOperationReadsIt) {
  EXPECT_FALSE(parameter.copy_for(parameter.value()).defined()) << "it reads the value itself";
  copy();
  EXPECT_FALSE(parameter.copy_for(images).defined()) << "it was not wanted before";
  copy();
  expect_copy(1);
  EXPECT_FALSE(parameter.copy_for(images.to(MemoryFormat::row_major)).defined()) << "the copy is channels-last";
  expect_copy(1);
  parameter.set_value(f64({2, 1, 1, 2}, {1, 2, 3, 4}).to(DType::f32).to(kGpu));
  EXPECT_FALSE(parameter.copy_for(images).defined());
  copy();
  EXPECT_EQ(parameter.current_copy().shape(), (Shape{2, 1, 1, 2}));
}

TEST_F(CudaParameter, HasNoCopyOfAnEarlierValue) {
  parameter.copy_for(images);
  copy();
  const void* const memory = parameter.current_copy().raw_data();
  const Tensor first = parameter.value(), other = filters(9);
  const std::vector<std::pair<std::string, std::function<void()>>> writes = {
      {"copy_from", [&] { parameter.value().copy_from(filters(7)); }},
      {"through the address", [&] { parameter.value().mark_written(); }},
      {"another tensor", [&] { parameter.set_value(other); }},
      {"the tensor before", [&] { parameter.set_value(first); }},
      {"the copy alone", [&] { parameter.current_copy().fill(5); }}};
  for (const auto& [name, write] : writes) {
    SCOPED_TRACE(name);
    write();
    EXPECT_FALSE(parameter.copy_for(images).defined());
    copy();
    expect_copy(parameter.value().to_vector<double>().front());
    EXPECT_EQ(parameter.current_copy().raw_data(), memory) << "recorded steps read it there";
  }
}

TEST_F(CudaParameter, HasACopyThatIsWrittenWithIt) {
  parameter.copy_for(images);
  copy();
  const Tensor copy = parameter.current_copy();
  parameter.value().copy_from(filters(8));
  copy.copy_from(filters(8).to(DType::bf16));
  expect_copy(8);
}

TEST_F(CudaParameter, IsNotCopiedByARecording) {
  parameter.copy_for(images);
  Tensor scaled = Tensor::empty_like(images);
  const auto recording = record(kGpu, [&] {
    copy();
    kernels::scale(images, 2, scaled);
  });
  EXPECT_EQ(recording->launches(), 1u);
  EXPECT_FALSE(parameter.copy_for(images).defined());
}

TEST_F(CudaParameter, KeepsFiltersAsConvolutionsReadThem) {
  const Device device = kGpu;
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
  there.copy_for(x);
  copy_parameters(all);
  EXPECT_FALSE(there.copy_for(x).defined()) << "an operation in f32 reads the value itself";
}

}  // namespace
}  // namespace tern
