#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tern/core/notices.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/feedback.h"
#include "tern/kernels/topk.h"
#include "tern/kernels/watch_numbers.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::kernels {
namespace {

std::vector<double> statistics_of(const Tensor& g) {
  const MeasuredGradient measured = {g, Tensor::empty({1, 3}, {.dtype = DType::f64, .device = g.device()})};
  gradient_statistics({&measured, 1}, 0);
  return measured.statistics.to_vector<double>();
}

/// The bucket has so many blocks that in the last step each thread folds a subtree of several.
TEST(CudaStatistics, OfALongBucketAreAddedInTheOrderOfTheCpus) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  const Tensor g = Tensor::empty({300 * 65536 + 12345});
  uint32_t word = 1;
  for (float& x : g.span<float>()) {
    word = word * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-40f;
  }
  EXPECT_EQ(statistics_of(g.to(Device{DeviceType::cuda, 0})), statistics_of(g));
}

/// Numbers are f32, or bytes at any address. A word keeps the first step that wrote it.
TEST(CudaWatch, NotesTheTensorsThatHaveNumbersBeyondTheMost) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device kCuda{DeviceType::cuda, 0};
  constexpr float kMost = 2;
  const auto with = [](float unlike) {
    Tensor numbers = Tensor::full({9001}, 2);
    numbers.span<float>()[8999] = unlike;
    return numbers.to(kCuda);
  };
  Tensor bytes = Tensor::zeros({1 + 4 * 5}, {.dtype = DType::u8});
  const float beyond = 2.5f;
  std::memcpy(bytes.data<uint8_t>() + 1 + 4 * 4, &beyond, sizeof beyond);
  const Tensor there = bytes.to(kCuda);
  const std::vector<Tensor> watched = {with(2),
                                       with(-2.0001f),
                                       with(std::numeric_limits<float>::quiet_NaN()),
                                       with(std::numeric_limits<float>::infinity()),
                                       there.slice(1, 21),
                                       there.slice(1, 17),
                                       Tensor::empty({0}, {.device = kCuda})};
  const Notices notices(kCuda, watched.size());
  for (const uint32_t step : {6u, 7u}) {
    std::vector<WatchedNumbers> all;
    for (size_t i = 0; i < watched.size(); ++i) all.push_back({watched[i], notices.at(i)});
    watch_numbers(all, kMost, step);
    device_backend(kCuda).synchronize();
    const uint32_t expected[] = {0, 7, 7, 7, 7, 0, 0};
    for (size_t i = 0; i < watched.size(); ++i) EXPECT_EQ(notices.read(i), expected[i]) << i;
  }
}

TEST(CudaFeedback, RefusesTensorsOnTwoDevices) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device kCuda{DeviceType::cuda, 0};
  const Tensor there = Tensor::zeros({1}, {.device = kCuda}), bytes = Tensor::zeros({4}, {.dtype = DType::u8});
  Tensor factor = Tensor::zeros({1});
  const DecodedPair pair = {there, there};
  const ScaledAddition addition = {there, there};
  const CopiedBytes copy = {bytes.to(kCuda), bytes};
  EXPECT_EQ(message_of<Error>([&] {
              nearest_factors({&pair, 1}, factor);
            }),
            "nearest_factors: factors are on cpu, a tensor is on cuda:0");
  EXPECT_EQ(message_of<Error>([&] {
              add_scaled({&addition, 1}, bytes, 1);
            }),
            "add_scaled: factors are on cpu, a tensor is on cuda:0");
  EXPECT_EQ(message_of<Error>([&] {
              copy_bytes({&copy, 1});
            }),
            "copy_bytes: u8 [4] on cuda:0 to u8 [4] on cpu, expected u8 of one shape on one device");
}

/// A wrong message: the CPU throws, and a device leaves out the places that are not in the tensor.
TEST(CudaTopK, LeavesOutPlacesThatAreNotInTheTensor) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int64_t kKept = 3;
  const uint32_t places[kKept] = {1, 4, 0xfffffff0u};
  const float values[kKept] = {0.5f, -2, 7};
  Tensor message = Tensor::zeros({1, topk_bytes(kKept)}, {.dtype = DType::u8});
  std::memcpy(message.raw_data(), places, sizeof places);
  std::memcpy(message.data<uint8_t>() + sizeof places, values, sizeof values);
  const Tensor here = Tensor::zeros({5}), there = here.to(Device{DeviceType::cuda, 0});
  const TopKSum on_cpu = {here, kKept, 0}, on_cuda = {there, kKept, 0};
  EXPECT_EQ(message_of<Error>([&] {
              topk_decode_add({&on_cpu, 1}, message, 1);
            }),
            "topk_decode_add: place 2 of a message is 4294967280, expected ascending ones below 5");
  topk_decode_add({&on_cuda, 1}, message.to(there.device()), 1);
  EXPECT_EQ(there.to_vector<float>(), (std::vector<float>{0, 0.5f, 0, 0, -2}));
}

}  // namespace
}  // namespace tern::kernels
