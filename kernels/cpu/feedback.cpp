#include "tern/kernels/feedback.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

void add_residual(std::span<const CorrectedGradient> message, double decay) {
  check_add_residual(message);
  const auto factor = static_cast<float>(decay);
  for (const auto& [gradient, minus, residual, whole] : message) {
    const float *g = gradient.data<float>(), *r = residual.data<float>();
    auto* const to = whole.data<float>();
    const float* const m = minus.defined() ? minus.data<float>() : nullptr;
    parallel_vectorized(gradient.numel(), kGrain, [=](int64_t first, int64_t last) {
      if (m == nullptr) {
#pragma omp simd
        for (int64_t i = first; i < last; ++i) to[i] = g[i] + factor * r[i];
      } else {
#pragma omp simd
        for (int64_t i = first; i < last; ++i) to[i] = g[i] - m[i] + factor * r[i];
      }
    });
  }
}

/// Σ whole·decoded as `sum` and Σ decoded² of one run.
CodecSums run_sums(const float* whole, const float* decoded, int64_t count) {
  constexpr int64_t kLanes = kStatisticsLanes;
  double products[kLanes] = {}, squares[kLanes] = {};
  const auto add_row = [&](int64_t first, int64_t lanes) {
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) {
      const double d = decoded[first + i], w = whole[first + i];
      products[i] += w * d;
      squares[i] += d * d;
    }
  };
  const int64_t rest = count % kLanes;
  for (int64_t first = 0; first < count - rest; first += kLanes) add_row(first, kLanes);
  add_row(count - rest, rest);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) {
      products[i] += products[i + half];
      squares[i] += squares[i + half];
    }
  return {0, products[0], squares[0]};
}

void nearest_factors(std::span<const DecodedPair> message, Tensor& factors) {
  check_nearest_factors(message, factors);
  float* next = factors.data<float>();
  for (const auto& [whole, decoded] : message) {
    const float *w = whole.data<float>(), *d = decoded.data<float>();
    const int64_t n = whole.numel();
    std::vector<CodecSums> runs(static_cast<size_t>((n + kStatisticsRun - 1) / kStatisticsRun));
    parallel_vectorized(std::ssize(runs), 4, [=, to = runs.data()](int64_t first, int64_t last) {
      for (int64_t run = first; run < last; ++run) {
        const int64_t at = run * kStatisticsRun;
        to[run] = run_sums(w + at, d + at, std::min(kStatisticsRun, n - at));
      }
    });
    *next++ = codec_nearest(codec_tree(runs.data(), std::ssize(runs)));
  }
}

void add_scaled(std::span<const ScaledAddition> message, const Tensor& factors, double sign) {
  check_add_scaled(message, factors);
  for (size_t i = 0; i < message.size(); ++i) {
    float factor = 1;
    if (factors.defined()) std::memcpy(&factor, factors.data<uint8_t>() + 4 * i, sizeof factor);
    factor *= static_cast<float>(sign);
    const auto& [x, sum] = message[i];
    const float* const from = x.data<float>();
    auto* const to = sum.data<float>();
    parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t e = first; e < last; ++e) to[e] += factor * from[e];
    });
  }
}

void copy_bytes(std::span<const CopiedBytes> copies) {
  check_copy_bytes(copies);
  for (const auto& [from, to] : copies) std::copy_n(from.data<uint8_t>(), from.numel(), to.data<uint8_t>());
}

}  // namespace

void provide_feedback() {
  kernels::add_residual.provide(Target::cpu, add_residual);
  kernels::nearest_factors.provide(Target::cpu, nearest_factors);
  kernels::add_scaled.provide(Target::cpu, add_scaled);
  kernels::copy_bytes.provide(Target::cpu, copy_bytes);
}

}  // namespace tern::cpu
