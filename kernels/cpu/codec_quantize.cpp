#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/codec.h"
#include "tern/kernels/cpu/codec/chunks.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;
using namespace tern::cpu::codec;

DrawKeys draw_keys(const RandomStream& stream) {
  DrawKeys keys;
  auto key = stream.key();
  for (auto& round : keys.key) {
    std::ranges::copy(key, round);
    key = philox_next_key(key);
  }
  const auto counter = stream.counter(0);
  std::copy(counter.begin() + 1, counter.end(), keys.counter);
  return keys;
}

/// Elements by which a loop asks for memory ahead, since computing a chunk takes longer than the processor looks ahead;
/// in norm_quantize the block that comes next.
constexpr int64_t kAhead = 8192;

/// Quantizes any chunks of one tensor.
class Quantizer {
 public:
  Quantizer(const CodedGradient& gradient, int64_t bucket, int64_t levels)
      : n_(gradient.g.numel()),
        width_(bucket_width(n_, bucket)),
        bits_(code_bits(levels)),
        limit_(65536.0f * static_cast<float>(levels)),
        stream_(gradient.key),
        keys_(draw_keys(stream_)),
        x_(gradient.g.data<float>()),
        units_(gradient.units.data<float>()),
        bytes_(gradient.codes.data<uint8_t>()) {}

  int64_t chunks() const { return (n_ + kCodecChunk - 1) / kCodecChunk; }

  void operator()(int64_t begin, int64_t end) const {
    BucketValues factors_of(units_, width_, codec_factor);
    uint32_t planes[kMostPlanes];
    const Loops& loop = loops();
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kCodecChunk, count = std::min(kCodecChunk, n_ - first);
      const float* factors = factors_of(first, count);
      const float* x = x_ + first;
      for (int64_t i = 0; i < kCodecChunk; i += 16) __builtin_prefetch(x + kAhead + i);
      uint32_t undecided[kCodecChunk / kCodecGroup];
      if (count == kCodecChunk) {
        loop.quantize(keys_, static_cast<uint32_t>(chunk * kCodecGroup), x, factors, limit_, bits_, planes, undecided);
      } else {
        std::fill(std::begin(planes), std::end(planes), 0u);
        std::fill(std::begin(undecided), std::end(undecided), ~0u);
      }
      for (int64_t group = 0; group < kCodecChunk / kCodecGroup; ++group)
        for (uint32_t left = undecided[group]; left != 0; left &= left - 1) {
          const int64_t i = group * kCodecGroup + std::countr_zero(left);
          if (i < count) quantize_element(first + i, factors[i], planes + group * bits_);
        }
      uint8_t* target = bytes_ + code_bytes(first, bits_);
      for_each_plane(count, bits_, [&](int64_t word, int64_t byte, int64_t size) {
        std::memcpy(target + byte, planes + word, static_cast<size_t>(size));
      });
    }
  }

 private:
  /// Puts the code of one element, from every random bit, into the planes of its group.
  void quantize_element(int64_t e, float factor, uint32_t* planes) const {
    const auto element = static_cast<uint64_t>(e);
    const uint32_t level = codec_level(codec_scaled(x_[e], factor, limit_), codec_draw(stream_, element),
                                       [&] { return codec_further_draw(stream_, element); });
    const uint32_t code = codec_code(x_[e], level);
    const auto lane = static_cast<int>(e % kCodecGroup);
    for (int bit = 0; bit < bits_; ++bit) planes[bit] = (planes[bit] & ~(1u << lane)) | (code >> bit & 1u) << lane;
  }

  int64_t n_, width_;
  int bits_;
  float limit_;
  RandomStream stream_;
  DrawKeys keys_;
  const float *x_, *units_;
  uint8_t* bytes_;
};

void quantize_all(const CodedGradient& gradient, int64_t bucket, int64_t levels) {
  const Quantizer quantizer(gradient, bucket, levels);
  parallel_for(0, quantizer.chunks(), kChunksPerThread, quantizer);
}

/// In blocks of whole buckets and whole chunks, small enough that the second pass finds them in the cache.
void norm_quantize_in_blocks(const CodedGradient& gradient, BucketNorm norm, int64_t width, int64_t levels) {
  const int64_t n = gradient.g.numel(), common = std::lcm(width, kCodecChunk);
  const int64_t block = common * std::max<int64_t>(1, kAhead / common);
  const Quantizer quantizer(gradient, width, levels);
  const float* x = gradient.g.data<float>();
  auto* unit = gradient.units.data<float>();
  parallel_for(0, (n + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block, last = std::min(n, first + block);
      float* next = unit + first / width;
      for (int64_t e = first; e < last; e += width) {
        const CodecSums sums = run_sums(x + e, std::min(width, last - e));
        *next++ = codec_unit(norm, sums.largest, sums.squares, levels);
      }
      quantizer(first / kCodecChunk, (last + kCodecChunk - 1) / kCodecChunk);
    }
  });
}

}  // namespace

void quantize(std::span<const CodedGradient> message, int64_t bucket, int64_t levels) {
  check_quantize("quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) quantize_all(gradient, bucket, levels);
}

void norm_quantize(std::span<const CodedGradient> message, BucketNorm norm, int64_t bucket, int64_t levels) {
  check_quantize("norm_quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) {
    const auto& [g, units, codes, key] = gradient;
    const int64_t width = bucket_width(g.numel(), bucket);
    if (width <= kStatisticsRun) {
      norm_quantize_in_blocks(gradient, norm, width, levels);
      continue;
    }
    const MeasuredGradient measured = {g, Tensor::empty({units.numel(), 3}, {.dtype = DType::f64})};
    cpu::gradient_statistics({&measured, 1}, bucket);
    const auto* row = measured.statistics.data<double>();
    for (float& unit : units.span<float>()) {
      unit = codec_unit(norm, row[0], row[2], levels);
      row += 3;
    }
    quantize_all(gradient, bucket, levels);
  }
}

}  // namespace tern::cpu
