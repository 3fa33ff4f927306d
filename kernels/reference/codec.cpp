#include "tern/kernels/reference/codec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/kernels/codec_arithmetic.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// Where bit `bit` of the code of element e stands: byte and mask.
struct CodeBit {
  CodeBit(int64_t n, int bits, int64_t e, int bit) {
    const int64_t group = e / kCodecGroup, in_group = e % kCodecGroup;
    const int64_t plane = (std::min(kCodecGroup, n - group * kCodecGroup) + 7) / 8;
    byte = group * 4 * bits + bit * plane + in_group / 8;
    mask = static_cast<uint8_t>(1u << (in_group % 8));
  }
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

}  // namespace

void gradient_statistics(const Tensor& g, int64_t bucket, Tensor& statistics) {
  check_gradient_statistics(g, bucket, statistics);
  const int64_t n = g.numel(), width = bucket == 0 ? n : bucket;
  auto* row = statistics.data<double>();
  for (int64_t first = 0; first < n; first += width, row += 3) {
    const int64_t last = std::min(first + width, n);
    std::vector<CodecSums> runs;
    for (int64_t i = first; i < last; i += kStatisticsRun)
      runs.push_back(run_sums(g.data<float>() + i, std::min(kStatisticsRun, last - i)));
    const CodecSums sums = codec_tree(runs.data(), static_cast<int64_t>(runs.size()));
    row[0] = sums.largest;
    row[1] = sums.sum;
    row[2] = sums.squares;
  }
}

void quantize(const Tensor& g, const Tensor& units, int64_t bucket, int64_t levels, const RandomKey& key,
              Tensor& codes) {
  check_quantize("quantize", g, units, bucket, levels, codes);
  const int64_t n = g.numel(), width = bucket == 0 ? n : bucket;
  const int bits = code_bits(levels);
  const RandomStream stream(key);
  auto* bytes = codes.data<uint8_t>();
  std::fill_n(bytes, codes.numel(), uint8_t{0});
  for (int64_t e = 0; e < n; ++e) {
    const float x = g.data<float>()[e];
    const auto element = static_cast<uint64_t>(e);
    const float scaled =
        codec_scaled(x, codec_factor(units.data<float>()[e / width]), 65536.0f * static_cast<float>(levels));
    const uint32_t level =
        codec_level(scaled, codec_draw(stream, element), [&] { return codec_further_draw(stream, element); });
    const uint32_t code = level << 1 | (level != 0 && std::signbit(x) ? 1u : 0u);
    for (int bit = 0; bit < bits; ++bit) {
      const CodeBit place(n, bits, e, bit);
      if ((code >> bit & 1u) != 0) bytes[place.byte] |= place.mask;
    }
  }
}

void norm_quantize(const Tensor& g, BucketNorm norm, int64_t bucket, int64_t levels, const RandomKey& key,
                   Tensor& units, Tensor& codes) {
  check_quantize("norm_quantize", g, units, bucket, levels, codes);
  Tensor statistics = Tensor::empty({bucket_count(g.numel(), bucket), 3}, {.dtype = DType::f64});
  reference::gradient_statistics(g, bucket, statistics);
  const auto* row = statistics.data<double>();
  for (float& unit : units.span<float>()) {
    unit = codec_unit(norm, row[0], row[2], levels);
    row += 3;
  }
  reference::quantize(g, units, bucket, levels, key, codes);
}

void dequantize_add(const Tensor& codes, const Tensor& units, int64_t bucket, int64_t levels, Tensor& sum) {
  check_quantize("dequantize_add", sum, units, bucket, levels, codes);
  const int64_t n = sum.numel(), width = bucket == 0 ? n : bucket;
  const int bits = code_bits(levels);
  for (int64_t e = 0; e < n; ++e) {
    uint32_t code = 0;
    for (int bit = 0; bit < bits; ++bit) {
      const CodeBit place(n, bits, e, bit);
      if ((codes.data<uint8_t>()[place.byte] & place.mask) != 0) code |= 1u << bit;
    }
    const float magnitude = static_cast<float>(code >> 1) * units.data<float>()[e / width];
    sum.data<float>()[e] += (code & 1u) != 0 ? -magnitude : magnitude;
  }
}

}  // namespace tern::reference
