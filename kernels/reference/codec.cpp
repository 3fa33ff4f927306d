#include "tern/kernels/codec.h"

#include <algorithm>
#include <vector>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// The byte that holds one bit of the code of element e, and the mask of that bit in the byte.
struct CodeBit {
  CodeBit(int64_t n, int bits, int64_t e, int bit)
      : byte(codec_plane(n, bits, e / kCodecGroup, bit).at + e % kCodecGroup / 8),
        mask(static_cast<uint8_t>(1u << (e % 8))) {}
  int64_t byte;
  uint8_t mask;
};

CodecSums run_sums(const float* x, int64_t count) {
  CodecSums lanes[kStatisticsLanes];
  for (int64_t i = 0; i < count; ++i) {
    const double value = x[i];
    CodecSums& lane = lanes[i % kStatisticsLanes];
    lane = lane + CodecSums{std::abs(value), value, value * value};
  }
  for (int half = kStatisticsLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  return lanes[0];
}

int64_t bucket_width(int64_t n, int64_t bucket) { return bucket == 0 ? n : bucket; }

/// Calls take(sums, count) for each bucket of `count` elements.
template <class Take>
void measure(const Tensor& g, int64_t bucket, Take take) {
  const int64_t n = g.numel(), width = bucket_width(n, bucket);
  for (int64_t first = 0; first < n; first += width) {
    const int64_t last = std::min(first + width, n);
    std::vector<CodecSums> runs;
    for (int64_t i = first; i < last; i += kStatisticsRun)
      runs.push_back(run_sums(g.data<float>() + i, std::min(kStatisticsRun, last - i)));
    take(codec_tree(runs.data(), static_cast<int64_t>(runs.size())), last - first);
  }
}

void find_units(const UnitGradient& gradient, const UnitRule& rule, int64_t bucket) {
  auto* unit = gradient.units.data<float>();
  measure(gradient.g, bucket, [&](const CodecSums& sums, int64_t count) { *unit++ = codec_unit(rule, sums, count); });
}

void encode(const CodedGradient& gradient, int64_t bucket, int64_t levels) {
  const int64_t n = gradient.g.numel(), width = bucket_width(n, bucket);
  const int bits = code_bits(levels);
  const RandomStream stream(gradient.key);
  const auto bytes = gradient.codes.span<uint8_t>();
  std::ranges::fill(bytes, uint8_t{0});
  for (int64_t e = 0; e < n; ++e) {
    float x = gradient.g.data<float>()[e];
    if (gradient.clips.defined()) x = codec_clipped(x, gradient.clips.data<float>()[e / width]);
    const auto element = static_cast<uint64_t>(e);
    const float scaled =
        codec_scaled(x, codec_factor(gradient.units.data<float>()[e / width]), 65536.0f * static_cast<float>(levels));
    const uint32_t level =
        codec_level(scaled, codec_draw(stream, element), [&] { return codec_further_draw(stream, element); });
    const uint32_t code = codec_code(x, level);
    for (int bit = 0; bit < bits; ++bit) {
      const CodeBit place(n, bits, e, bit);
      if ((code >> bit & 1u) != 0) bytes[static_cast<size_t>(place.byte)] |= place.mask;
    }
  }
}

void decode_add(const uint8_t* codes, const float* units, int64_t bucket, int64_t levels, const Tensor& sum) {
  const int64_t n = sum.numel(), width = bucket_width(n, bucket);
  const int bits = code_bits(levels);
  for (int64_t e = 0; e < n; ++e) {
    uint32_t code = 0;
    for (int bit = 0; bit < bits; ++bit) {
      const CodeBit place(n, bits, e, bit);
      if ((codes[place.byte] & place.mask) != 0) code |= 1u << bit;
    }
    const float magnitude = static_cast<float>(code >> 1) * units[e / width];
    sum.data<float>()[e] += (code & 1u) != 0 ? -magnitude : magnitude;
  }
}

void gradient_statistics(std::span<const MeasuredGradient> message, int64_t bucket) {
  check_statistics(message, bucket);
  for (const auto& [g, statistics] : message) {
    auto* row = statistics.data<double>();
    measure(g, bucket, [&](const CodecSums& sums, int64_t) {
      row[0] = sums.largest;
      row[1] = sums.sum;
      row[2] = sums.squares;
      row += 3;
    });
  }
}

void gradient_units(std::span<const UnitGradient> message, const UnitRule& rule, int64_t bucket) {
  check_units(message, rule, bucket);
  for (const UnitGradient& gradient : message) find_units(gradient, rule, bucket);
}

void quantize(std::span<const CodedGradient> message, int64_t bucket, int64_t levels) {
  check_quantize("quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) encode(gradient, bucket, levels);
}

void norm_quantize(std::span<const CodedGradient> message, BucketNorm norm, int64_t bucket, int64_t levels) {
  check_quantize("norm_quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) {
    find_units({gradient.g, gradient.units}, {norm, levels}, bucket);
    encode(gradient, bucket, levels);
  }
}

void dequantize_add(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                    int64_t bucket, int64_t levels) {
  check_dequantize(message, messages, units, bucket, levels);
  const Tensor rows = units_of(message, messages, units, bucket);
  for (const auto& [sum, first_unit, codes_at] : message)
    for (int64_t i = 0; i < messages.size(0); ++i)
      decode_add(messages.data<uint8_t>() + i * messages.size(1) + codes_at,
                 rows.data<float>() + i % rows.size(0) * rows.size(1) + first_unit, bucket, levels, sum);
}

}  // namespace

void provide_codec() {
  kernels::gradient_statistics.provide(Target::reference, gradient_statistics);
  kernels::gradient_units.provide(Target::reference, gradient_units);
  kernels::quantize.provide(Target::reference, quantize);
  kernels::norm_quantize.provide(Target::reference, norm_quantize);
  kernels::dequantize_add.provide(Target::reference, dequantize_add);
}

}  // namespace tern::reference
