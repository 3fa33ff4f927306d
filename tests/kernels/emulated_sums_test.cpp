#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/random.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/loss.h"
#include "tern/kernels/randk.h"
#include "tern/kernels/recording.h"
#include "tern/kernels/reduction.h"
#include "tern/kernels/topk.h"
#include "tern/kernels/update.h"
#include "tests/support/values.h"

namespace tern {
namespace {

constexpr Device kDevice{DeviceType::cuda, 0};

Tensor random_on_device(const Shape& shape) {
  const RandomStream random({.seed = 3, .purpose = Purpose::test});
  const Tensor x = Tensor::empty(shape);
  for (size_t i = 0; i < x.span<float>().size(); ++i) x.span<float>()[i] = random.normal(i);
  return x.to(kDevice);
}
Tensor sum_of(const Shape& from, const Shape& to) {
  Tensor y = Tensor::empty(to, {.device = kDevice});
  kernels::sum(random_on_device(from), 1, y);
  return y;
}
/// If `ignored` is a label, the last block also adds the weights.
Tensor cross_entropy_of(int64_t rows, std::optional<int64_t> ignored) {
  Tensor loss = Tensor::empty({}, {.device = kDevice}), probabilities = Tensor::empty({rows, 10}, {.device = kDevice}),
         divisor = Tensor::empty({}, {.dtype = DType::f64, .device = kDevice});
  std::vector<int64_t> labels(static_cast<size_t>(rows));
  for (size_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<int64_t>(row) % 10;
  kernels::cross_entropy(random_on_device({rows, 10}),
                         {.labels = Tensor::from({rows}, labels).to(kDevice), .ignored = ignored}, loss, divisor,
                         probabilities);
  return loss;
}
Tensor squared_norm_of(const std::vector<Shape>& shapes) {
  std::vector<kernels::ParameterUpdate> updates;
  for (const Shape& shape : shapes) {
    const Tensor g = random_on_device(shape);
    updates.push_back({.w = g, .g = g, .first = {}, .second = {}});
  }
  Tensor sum = Tensor::empty({}, {.dtype = DType::f64, .device = kDevice});
  kernels::squared_norm(updates, sum);
  return sum;
}
/// The statistics of the buckets of a gradient.
Tensor statistics_of(int64_t numel, int64_t bucket) {
  const kernels::MeasuredGradient measured{
      random_on_device({numel}),
      Tensor::empty({kernels::bucket_count(numel, bucket), 3}, {.dtype = DType::f64, .device = kDevice})};
  kernels::gradient_statistics({&measured, 1}, bucket);
  return measured.statistics;
}

constexpr int64_t kSparse = 50'000, kKept = 300;
Tensor topk_codes() {
  const Tensor codes = Tensor::empty({kernels::topk_bytes(kKept)}, {.dtype = DType::u8, .device = kDevice});
  const kernels::TopKGradient part{random_on_device({kSparse}), kKept, codes};
  kernels::topk_encode({&part, 1});
  return codes;
}
Tensor randk_codes() {
  const Tensor codes = Tensor::empty({kernels::randk_bytes(kKept)}, {.dtype = DType::u8, .device = kDevice});
  const kernels::RandKGradient part{random_on_device({kSparse}), {.seed = 1, .purpose = Purpose::test}, kKept, codes};
  kernels::randk_encode({&part, 1});
  return codes;
}

// Each takes several blocks, and the last of them to end adds up what all of them have found.
const std::pair<std::string, std::function<Tensor()>> kSums[] = {
    {"columns",
     [] {
       return sum_of({5000, 40}, {1, 40});
     }},
    {"columns of matrices",
     [] {
       return sum_of({3, 5000, 5}, {3, 1, 5});
     }},
    {"rows",
     [] {
       return sum_of({3, 9000}, {3, 1});
     }},
    {"all",
     [] {
       return sum_of({5000, 4}, {1, 1});
     }},
    {"cross_entropy", [] { return cross_entropy_of(300, {}); }},
    {"cross_entropy without a label", [] { return cross_entropy_of(300, 3); }},
    {"squared_norm",
     [] {
       return squared_norm_of({{9000}, {3}, {0}});
     }},
    {"long buckets", [] { return statistics_of(400'000, 150'000); }},
    {"topk", topk_codes},
    {"randk", randk_codes},
    {"squared_norm in two launches", [] { return squared_norm_of(std::vector<Shape>(130, {5})); }},
};

TEST(CudaSums, AreTheSameWhicheverBlockIsLast) {
  for (const auto& [name, sum] : kSums) {
    SCOPED_TRACE(name);
    const Values first = sum().to_vector<double>();
    for (const bool last_block_first : {true, false}) {
      emulation::last_block_first = last_block_first;
      EXPECT_EQ(sum().to_vector<double>(), first);
    }
  }
}

TEST(CudaSums, OfLongBucketsTakeOneLaunch) {
  constexpr int64_t kBucket = 70'000;
  const Tensor g = random_on_device({3 * kBucket});
  const kernels::UnitGradient measured{g, Tensor::empty({3}, {.device = kDevice})};
  const auto work = [&] { kernels::gradient_units({&measured, 1}, {}, kBucket); };
  work();
  EXPECT_EQ(record(kDevice, work)->launches(), 1u);
}

// Some buckets have several blocks, and the others have one each.
TEST(CudaSums, OfLongBucketsAreTheSameHoweverManyBlocksTheyHave) {
  constexpr int64_t kBucket = 150'000, kBuckets = 2, kGradients = 2;
  const Tensor g = random_on_device({kBuckets * kBucket - 1000});
  for (const int64_t most_shared : {2 * kBuckets, kBuckets, kBuckets - 1}) {
    Tensor statistics = Tensor::empty({kGradients, kBuckets, 3}, {.dtype = DType::f64, .device = kDevice});
    std::vector<cuda::BucketSums> gradients;
    for (int64_t i = 0; i < kGradients; ++i)
      gradients.push_back({g.data<float>(), g.numel(), kBucket, statistics.data<double>() + 3 * kBuckets * i, nullptr});
    cuda::sum_buckets("test", kDevice, gradients, {}, most_shared);
    const Values one = statistics_of(g.numel(), kBucket).to_vector<double>(), all = statistics.to_vector<double>();
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], one[i % one.size()]) << most_shared << ", element " << i;
  }
}

TEST(CudaSums, OfNoElementsAreZero) { expect_values(squared_norm_of({{0}, {2, 0}}), {0}, 0); }

}  // namespace
}  // namespace tern
