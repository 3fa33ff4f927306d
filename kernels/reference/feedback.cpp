#include "tern/kernels/feedback.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

void add_residual(std::span<const CorrectedGradient> message, double decay) {
  check_add_residual(message);
  for (const auto& [gradient, minus, residual, whole] : message)
    for (int64_t e = 0; e < gradient.numel(); ++e) {
      const float given = gradient.data<float>()[e] - (minus.defined() ? minus.data<float>()[e] : 0);
      const float kept = static_cast<float>(decay) * residual.data<float>()[e];
      whole.data<float>()[e] = given + kept;
    }
}

/// Σ whole·decoded as `sum` and Σ decoded² of one run.
CodecSums run_sums(const float* whole, const float* decoded, int64_t count) {
  CodecSums lanes[kStatisticsLanes];
  for (int64_t i = 0; i < count; ++i) {
    const double d = decoded[i];
    CodecSums& lane = lanes[i % kStatisticsLanes];
    lane = lane + CodecSums{0, d * whole[i], d * d};
  }
  for (int half = kStatisticsLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  return lanes[0];
}

void nearest_factors(std::span<const DecodedPair> message, Tensor& factors) {
  check_nearest_factors(message, factors);
  float* next = factors.data<float>();
  for (const auto& [whole, decoded] : message) {
    std::vector<CodecSums> runs;
    for (int64_t i = 0; i < whole.numel(); i += kStatisticsRun)
      runs.push_back(
          run_sums(whole.data<float>() + i, decoded.data<float>() + i, std::min(kStatisticsRun, whole.numel() - i)));
    *next++ = codec_nearest(codec_tree(runs.data(), std::ssize(runs)));
  }
}

void add_scaled(std::span<const ScaledAddition> message, const Tensor& factors, double sign) {
  check_add_scaled(message, factors);
  for (size_t i = 0; i < message.size(); ++i) {
    float factor = 1;
    if (factors.defined()) std::memcpy(&factor, factors.data<uint8_t>() + 4 * i, sizeof factor);
    const auto& [x, sum] = message[i];
    for (int64_t e = 0; e < x.numel(); ++e) {
      const float scaled = static_cast<float>(sign) * factor * x.data<float>()[e];
      sum.data<float>()[e] += scaled;
    }
  }
}

void copy_bytes(std::span<const CopiedBytes> copies) {
  check_copy_bytes(copies);
  for (const auto& [from, to] : copies) std::copy_n(from.data<uint8_t>(), from.numel(), to.data<uint8_t>());
}

}  // namespace

void provide_feedback() {
  kernels::add_residual.provide(Target::reference, add_residual);
  kernels::nearest_factors.provide(Target::reference, nearest_factors);
  kernels::add_scaled.provide(Target::reference, add_scaled);
  kernels::copy_bytes.provide(Target::reference, copy_bytes);
}

}  // namespace tern::reference
