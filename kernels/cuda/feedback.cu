#include "tern/kernels/feedback.h"

#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int kPerThread = 8;
constexpr int64_t kPerBlock = kThreads * kPerThread;
constexpr int64_t blocks_of(int64_t numel) { return (numel + kPerBlock - 1) / kPerBlock; }

/// Calls body(j, e) for each element e of this thread, the j-th one.
template <class Body>
__device__ void for_each_own(int64_t block, int64_t numel, Body body) {
  const int64_t first = block * kPerBlock + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    if (first + j * kThreads < numel) body(j, first + j * kThreads);
}

struct Corrected {
  const float *gradient, *minus, *residual;  ///< minus may be null
  float* whole;
  int64_t numel;
};

/// Loads everything before it stores, because `whole` may be the residual.
__global__ void __launch_bounds__(kThreads)
    add_residual_kernel(float decay, const __grid_constant__ ItemTable<Corrected> table) {
  const auto place = table.place();
  const Corrected& of = place.entry;
  float x[kPerThread];
  for_each_own(place.block, of.numel, [&](int j, int64_t e) {
    x[j] = of.gradient[e] - (of.minus != nullptr ? of.minus[e] : 0.0f) + decay * of.residual[e];
  });
  for_each_own(place.block, of.numel, [&](int j, int64_t e) { of.whole[e] = x[j]; });
}

void add_residual(std::span<const CorrectedGradient> message, double decay) {
  check_add_residual(message);
  std::vector<Corrected> entries;
  for (const auto& [gradient, minus, residual, whole] : message)
    entries.push_back({gradient.data<float>(), minus.defined() ? minus.data<float>() : nullptr, residual.data<float>(),
                       whole.data<float>(), gradient.numel()});
  for_each_table(
      std::span<const Corrected>(entries), [](const Corrected& of) { return blocks_of(of.numel); },
      [&](const auto& table) {
        launch("add_residual", kernels::placement(message).device(), table.grid(), add_residual_kernel,
               static_cast<float>(decay), table);
      });
}

void nearest_factors(std::span<const DecodedPair> message, Tensor& factors) {
  check_nearest_factors(message, factors);
  std::vector<BucketSums> sums;
  for (const auto& [whole, decoded] : message)
    sums.push_back({.g = decoded.data<float>(),
                    .numel = decoded.numel(),
                    .width = decoded.numel(),
                    .statistics = nullptr,
                    .units = factors.data<float>() + std::ssize(sums),
                    .whole = whole.data<float>()});
  sum_products("nearest_factors", kernels::placement(message).device(), sums);
}

struct Added {
  const float* x;
  float* sum;
  const uint8_t* factor;  ///< of f32; null if it is 1
  int64_t numel;
};

__global__ void __launch_bounds__(kThreads)
    add_scaled_kernel(float sign, const __grid_constant__ ItemTable<Added> table) {
  const auto place = table.place();
  const Added& of = place.entry;
  const float factor = sign * (of.factor == nullptr ? 1.0f : std::bit_cast<float>(load_bytes(of.factor, 4)));
  float sums[kPerThread];
  for_each_own(place.block, of.numel, [&](int j, int64_t e) { sums[j] = of.sum[e] + factor * of.x[e]; });
  for_each_own(place.block, of.numel, [&](int j, int64_t e) { of.sum[e] = sums[j]; });
}

void add_scaled(std::span<const ScaledAddition> message, const Tensor& factors, double sign) {
  check_add_scaled(message, factors);
  std::vector<Added> entries;
  for (const auto& [x, sum] : message)
    entries.push_back({x.data<float>(), sum.data<float>(),
                       factors.defined() ? factors.data<uint8_t>() + 4 * std::ssize(entries) : nullptr, x.numel()});
  for_each_table(
      std::span<const Added>(entries), [](const Added& of) { return blocks_of(of.numel); },
      [&](const auto& table) {
        launch("add_scaled", kernels::placement(message).device(), table.grid(), add_scaled_kernel,
               static_cast<float>(sign), table);
      });
}

struct Copied {
  const uint8_t* from;
  uint8_t* to;
  int64_t count;
};

__global__ void __launch_bounds__(kThreads) copy_bytes_kernel(const __grid_constant__ ItemTable<Copied> table) {
  const auto place = table.place();
  const Copied& of = place.entry;
  uint8_t bytes[kPerThread];
  for_each_own(place.block, of.count, [&](int j, int64_t i) { bytes[j] = of.from[i]; });
  for_each_own(place.block, of.count, [&](int j, int64_t i) { of.to[i] = bytes[j]; });
}

void copy_bytes(std::span<const CopiedBytes> copies) {
  check_copy_bytes(copies);
  std::vector<Copied> entries;
  for (const auto& [from, to] : copies) entries.push_back({from.data<uint8_t>(), to.data<uint8_t>(), from.numel()});
  for_each_table(
      std::span<const Copied>(entries), [](const Copied& of) { return blocks_of(of.count); },
      [&](const auto& table) {
        launch("copy_bytes", kernels::placement(copies).device(), table.grid(), copy_bytes_kernel, table);
      });
}

}  // namespace

void provide_feedback() {
  kernels::add_residual.provide(Target::cuda, add_residual);
  kernels::nearest_factors.provide(Target::cuda, nearest_factors);
  kernels::add_scaled.provide(Target::cuda, add_scaled);
  kernels::copy_bytes.provide(Target::cuda, copy_bytes);
}

}  // namespace tern::cuda
