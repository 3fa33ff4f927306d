#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>

#include "tern/core/tensor.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

constexpr Device kCuda{DeviceType::cuda, 0};

class CudaMemory : public testing::Test {
  void SetUp() override {
    if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

std::vector<float> count_up(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_F(CudaMemory, BringsBackWhatItWasGiven) {
  // Sizes near one staging buffer, 4 MiB, and a size of several.
  for (const int64_t count : {1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5'000'000}) {
    const auto values = count_up(count);
    const Tensor there = Tensor::from<float>({count}, values).to(kCuda);
    EXPECT_EQ(there.device(), kCuda);
    EXPECT_EQ(there.clone().to_vector<float>(), values) << count;
  }
}

TEST_F(CudaMemory, FillsAndConverts) {
  const Tensor zeros = Tensor::zeros({3, 5}, {.device = kCuda});
  EXPECT_EQ(zeros.to_vector<float>(), std::vector<float>(15, 0));
  const Tensor ones = Tensor::full({2, 3, 4, 4}, 1.5, {.dtype = DType::bf16, .device = kCuda});
  const Tensor turned = ones.to(MemoryFormat::channels_last).to(DType::f32);
  EXPECT_EQ(turned.device(), kCuda);
  EXPECT_EQ(turned.to_vector<float>(), std::vector<float>(96, 1.5f));
}

TEST_F(CudaMemory, TakesNothingFromTheSystemInSteadyState) {
  const auto step = [] {
    for (const int64_t size : {1, 100, 4096, 100000, 3}) {
      const Tensor held = Tensor::zeros({size}, {.device = kCuda});
      const Tensor scratch = Tensor::empty({2 * size, 3}, {.device = kCuda});
    }
  };
  step();
  const auto before = device_backend(kCuda).statistics();
  for (int i = 0; i < 50; ++i) step();
  const auto after = device_backend(kCuda).statistics();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.in_use, before.in_use);
}

TEST_F(CudaMemory, UploadsBesideKernelsArriveBeforeThoseIssuedAfterJoin) {
  const auto upload = device_backend(kCuda).make_upload();
  const int64_t count = 3'000'000;
  Tensor target = Tensor::zeros({count}, {.device = kCuda});
  for (int round = 0; round < 5; ++round) {
    auto values = count_up(count);
    values.front() = static_cast<float>(round);
    upload->follow();
    const size_t size = sizeof(float), first = 1'000'001 * size, second = 7 * size;  // in bytes
    const auto* const from = reinterpret_cast<const std::byte*>(values.data());
    const Upload::Part parts[] = {{0, from, first},
                                  {first, from + first, 0},
                                  {first, from + first, second},
                                  {first + second, from + first + second, values.size() * size - first - second}};
    upload->copy(target.raw_data(), parts);
    const auto expected = values;
    std::ranges::fill(values, -1.0f);  // copy has returned, so the source may change
    upload->join();
    EXPECT_EQ(target.to_vector<float>(), expected) << round;
  }
}

TEST_F(CudaMemory, UploadsReadHostMemoryAndKeepItUntilTheyEnd) {
  DeviceBackend& device = device_backend(kCuda);
  const auto upload = device.make_upload();
  const int64_t count = 1'000'000;
  const size_t bytes = count * sizeof(float);
  Tensor target = Tensor::zeros({count}, {.device = kCuda});
  std::set<const void*> used;
  for (int round = 0; round < 8; ++round) {
    std::shared_ptr<void> source = device.host_memory(bytes);
    used.insert(source.get());
    auto expected = count_up(count);
    expected.front() = static_cast<float>(round);
    std::memcpy(source.get(), expected.data(), bytes);
    const std::weak_ptr<void> kept = source;
    upload->copy(target.raw_data(), std::move(source), bytes);
    EXPECT_FALSE(kept.expired());
    upload->join();
    EXPECT_EQ(target.to_vector<float>(), expected) << round;
  }
  EXPECT_LE(used.size(), 3u) << "blocks are used again";
}

TEST_F(CudaMemory, SaysHowMuchIsMissing) {
  const std::string message =
      message_of<ResourceError>([] { Tensor::empty({int64_t{1} << 46}, {.dtype = DType::u8, .device = kCuda}); });
  EXPECT_TRUE(message.starts_with("device cuda:0: out of memory: 70368744177664 bytes were asked for")) << message;
  EXPECT_NE(message.find("a smaller batch needs less"), std::string::npos) << message;
  EXPECT_EQ(Tensor::full({4}, 2, {.device = kCuda}).to_vector<float>(), std::vector<float>(4, 2)) << "goes on after it";
}

TEST_F(CudaMemory, NamesADeviceThatDoesNotExist) {
  const std::string message = message_of<InputError>([] { device_backend({DeviceType::cuda, 15}); });
  EXPECT_TRUE(message.starts_with("device cuda:15: this machine has ")) << message;
}

}  // namespace
}  // namespace tern
