#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cpu/draw_keys.h"
#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

static_assert(simd::kChunk == kCodecChunk && simd::kGroup == kCodecGroup && simd::kLanes == kStatisticsLanes);

/// The minimum number of chunks per thread.
constexpr int64_t kChunksPerThread = 64;
/// The maximum number of words in the planes of one chunk.
constexpr int64_t kMostPlanes = kCodecChunk / kCodecGroup * code_bits(kMostLevels);

/// Number of elements in a bucket. If `bucket` is 0, the bucket holds all n elements.
int64_t bucket_width(int64_t n, int64_t bucket) { return bucket == 0 ? std::max<int64_t>(1, n) : bucket; }

/// The sums of one run of at most kStatisticsRun elements, as far as a unit of this norm needs them.
CodecSums run_sums(const float* x, int64_t count, BucketNorm norm) {
  const simd::CodecLoops& loop = *simd::kernels().codec;
  CodecSums run;
  if (norm == BucketNorm::max) {
    run.largest = static_cast<double>(loop.largest(x, count));
    run.squares = run.largest * run.largest;  // it tells of NaN and infinities
  } else {
    loop.statistics(x, count, run.largest, run.sum, run.squares);
  }
  return run;
}

/// Gives each element of a chunk a value that depends on its bucket: of(per_bucket[bucket]). Most chunks lie in the
/// same bucket as the chunk before, and then it reuses the values.
template <class Of>
class BucketValues {
 public:
  BucketValues(const float* per_bucket, int64_t width, Of of) : per_bucket_(per_bucket), width_(width), of_(of) {}

  /// The values for elements [first, first + count), at most one chunk.
  const float* operator()(int64_t first, int64_t count) {
    if (first >= begin_ && first + count <= end_) return values_;
    begin_ = end_ = 0;
    for (int64_t i = 0; i < count;) {
      const int64_t bucket = (first + i) / width_, next = (bucket + 1) * width_;
      const int64_t end = std::min(kCodecChunk, next - first);
      std::fill(values_ + i, values_ + end, of_(per_bucket_[bucket]));
      if (i == 0 && end == kCodecChunk) {
        begin_ = first;
        end_ = next;
      }
      i = end;
    }
    return values_;
  }

 private:
  const float* per_bucket_;
  int64_t width_;
  Of of_;
  int64_t begin_ = 0, end_ = 0;  // elements of the bucket whose value fills all of values_
  float values_[kCodecChunk] = {};
};

float as_it_is(float value) { return value; }

/// Calls copy(word, byte, size) for each piece of the planes of `count` elements: `size` bytes that are at word offset
/// `word` in the planes and at byte offset `byte` in the coded bytes. The planes of a short last group are cut to whole
/// bytes.
template <class Copy>
void for_each_plane(int64_t count, int bits, Copy copy) {
  const int64_t whole = count / kCodecGroup * bits, rest = (count % kCodecGroup + 7) / 8;
  if (whole != 0) copy(0, 0, 4 * whole);
  if (rest == 0) return;
  for (int bit = 0; bit < bits; ++bit) copy(whole + bit, 4 * whole + bit * rest, rest);
}

/// Calls take(sums, count) for each bucket of `count` elements, with what a unit of this norm needs.
template <class Take>
void measure(const Tensor& g, int64_t bucket, BucketNorm norm, Take take) {
  const int64_t n = g.numel(), width = std::min(bucket_width(n, bucket), std::max<int64_t>(1, n));
  const int64_t runs_per_bucket = (width + kStatisticsRun - 1) / kStatisticsRun;
  const int64_t buckets = bucket_count(n, bucket);
  std::vector<CodecSums> runs(static_cast<size_t>(buckets * runs_per_bucket));
  const float* x = g.data<float>();
  const int64_t grain = std::max<int64_t>(1, 16 * kStatisticsRun / std::min(width, kStatisticsRun));
  parallel_for(0, buckets * runs_per_bucket, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t b = r / runs_per_bucket, first = b * width + r % runs_per_bucket * kStatisticsRun;
      const int64_t last = std::min({n, first + kStatisticsRun, (b + 1) * width});
      if (first < last) runs[static_cast<size_t>(r)] = run_sums(x + first, last - first, norm);
    }
  });
  for (int64_t b = 0; b < buckets; ++b) {
    const int64_t count = std::min(n - b * width, width);
    take(codec_tree(runs.data() + b * runs_per_bucket, (count + kStatisticsRun - 1) / kStatisticsRun), count);
  }
}

/// A unit of this norm needs the largest magnitude, the sum and the sum of squares.
constexpr BucketNorm kNormOfAllSums = BucketNorm::clipped;

void gradient_statistics(std::span<const MeasuredGradient> message, int64_t bucket) {
  check_statistics(message, bucket);
  for (const auto& [g, statistics] : message) {
    auto* row = statistics.data<double>();
    measure(g, bucket, kNormOfAllSums, [&](const CodecSums& sums, int64_t) {
      row[0] = sums.largest;
      row[1] = sums.sum;
      row[2] = sums.squares;
      row += 3;
    });
  }
}

void find_units(const Tensor& g, const Tensor& units, const UnitRule& rule, int64_t bucket) {
  auto* unit = units.data<float>();
  measure(g, bucket, rule.norm, [&](const CodecSums& sums, int64_t count) { *unit++ = codec_unit(rule, sums, count); });
}

void gradient_units(std::span<const UnitGradient> message, const UnitRule& rule, int64_t bucket) {
  check_units(message, rule, bucket);
  for (const auto& [g, units] : message) find_units(g, units, rule, bucket);
}

/// Prefetch distance of the loops in elements. The computation of a chunk takes longer than the hardware prefetcher
/// looks ahead. In norm_quantize, this prefetches the next block.
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
        clips_(gradient.clips.defined() ? gradient.clips.data<float>() : nullptr),
        bytes_(gradient.codes.data<uint8_t>()) {}

  int64_t chunks() const { return (n_ + kCodecChunk - 1) / kCodecChunk; }

  void operator()(int64_t begin, int64_t end) const {
    BucketValues factors_of(units_, width_, codec_factor);
    BucketValues clips_of(clips_, width_, as_it_is);
    float clipped[kCodecChunk];
    uint32_t planes[kMostPlanes];
    const simd::CodecLoops& loop = *simd::kernels().codec;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kCodecChunk, count = std::min(kCodecChunk, n_ - first);
      const float* factors = factors_of(first, count);
      const float* x = x_ + first;
      for (int64_t i = 0; i < kCodecChunk; i += 16) __builtin_prefetch(x + kAhead + i);
      if (clips_ != nullptr) {
        std::transform(x, x + count, clips_of(first, count), clipped, codec_clipped);
        x = clipped;
      }
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
          if (i < count) quantize_element(first + i, x[i], factors[i], planes + group * bits_);
        }
      uint8_t* target = bytes_ + code_bytes(first, bits_);
      for_each_plane(count, bits_, [&](int64_t word, int64_t byte, int64_t size) {
        std::memcpy(target + byte, planes + word, static_cast<size_t>(size));
      });
    }
  }

 private:
  /// Computes the code of one element with all its random bits and puts it into the planes of its group.
  void quantize_element(int64_t e, float x, float factor, uint32_t* planes) const {
    const auto element = static_cast<uint64_t>(e);
    const uint32_t level = codec_level(codec_scaled(x, factor, limit_), codec_draw(stream_, element),
                                       [&] { return codec_further_draw(stream_, element); });
    const uint32_t code = codec_code(x, level);
    const auto lane = static_cast<int>(e % kCodecGroup);
    for (int bit = 0; bit < bits_; ++bit) planes[bit] = (planes[bit] & ~(1u << lane)) | (code >> bit & 1u) << lane;
  }

  int64_t n_, width_;
  int bits_;
  float limit_;
  RandomStream stream_;
  simd::DrawKeys keys_;
  const float *x_, *units_, *clips_;
  uint8_t* bytes_;
};

void quantize_all(const CodedGradient& gradient, int64_t bucket, int64_t levels) {
  const Quantizer quantizer(gradient, bucket, levels);
  parallel_for(0, quantizer.chunks(), kChunksPerThread, quantizer);
}

/// Works in blocks of whole buckets and whole chunks. A block is small enough to be in the cache for its second pass.
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
        const int64_t count = std::min(width, last - e);
        *next++ = codec_unit({norm, levels}, run_sums(x + e, count, norm), count);
      }
      quantizer(first / kCodecChunk, (last + kCodecChunk - 1) / kCodecChunk);
    }
  });
}

void quantize(std::span<const CodedGradient> message, int64_t bucket, int64_t levels) {
  check_quantize("quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) quantize_all(gradient, bucket, levels);
}

void norm_quantize(std::span<const CodedGradient> message, BucketNorm norm, int64_t bucket, int64_t levels) {
  check_quantize("norm_quantize", message, bucket, levels);
  for (const CodedGradient& gradient : message) {
    const auto& [g, units, codes, key, clips] = gradient;
    const int64_t width = bucket_width(g.numel(), bucket);
    if (width <= kStatisticsRun) {
      norm_quantize_in_blocks(gradient, norm, width, levels);
      continue;
    }
    find_units(g, units, {norm, levels}, bucket);
    quantize_all(gradient, bucket, levels);
  }
}

/// The codes of one gradient in every message: `count` rows of bytes. The units have as many rows, or one row that all
/// messages share.
struct Rows {
  const uint8_t* codes;
  const float* units;
  int64_t count, bytes_between, units_between;
};

/// y[count] += codes · units. `count` is at most a chunk.
void add_chunk(const uint8_t* codes, const float* units, int64_t count, int bits, float* y) {
  uint32_t planes[kMostPlanes];
  for_each_plane(count, bits, [&](int64_t word, int64_t byte, int64_t size) {
    planes[word + (size + 3) / 4 - 1] = 0;
    std::memcpy(planes + word, codes + byte, static_cast<size_t>(size));
  });
  const simd::CodecLoops& loop = *simd::kernels().codec;
  const int64_t whole = count / kCodecGroup * kCodecGroup;
  for (int64_t i = 0; i < whole; i += kCodecGroup)
    loop.dequantize_add(planes + i / kCodecGroup * bits, bits, units + i, y + i);
  if (whole == count) return;
  float rest[kCodecGroup] = {};
  std::copy_n(y + whole, count - whole, rest);
  loop.dequantize_add(planes + whole / kCodecGroup * bits, bits, units + whole, rest);
  std::copy_n(rest, count - whole, y + whole);
}

void add_all(const Rows& rows, int64_t bucket, int bits, const Tensor& sum) {
  const int64_t n = sum.numel(), width = bucket_width(n, bucket);
  float* y = sum.data<float>();
  parallel_for(0, (n + kCodecChunk - 1) / kCodecChunk, kChunksPerThread, [&](int64_t begin, int64_t end) {
    std::vector<BucketValues<decltype(&as_it_is)>> units_of;
    for (int64_t i = 0; i < rows.count; ++i)
      units_of.emplace_back(rows.units + i * rows.units_between, width, as_it_is);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kCodecChunk, count = std::min(kCodecChunk, n - first);
      for (int64_t i = 0; i < rows.count; ++i)
        add_chunk(rows.codes + i * rows.bytes_between + code_bytes(first, bits),
                  units_of[static_cast<size_t>(i)](first, count), count, bits, y + first);
    }
  });
}

void dequantize_add(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                    int64_t bucket, int64_t levels) {
  check_dequantize(message, messages, units, bucket, levels);
  const Tensor all = units_of(message, messages, units, bucket);
  for (const auto& [sum, first_unit, codes_at] : message)
    add_all({.codes = messages.data<uint8_t>() + codes_at,
             .units = all.data<float>() + first_unit,
             .count = messages.size(0),
             .bytes_between = messages.size(1),
             .units_between = units.defined() ? 0 : all.size(1)},
            bucket, code_bits(levels), sum);
}

}  // namespace

void provide_codec() {
  kernels::gradient_statistics.provide(Target::cpu, gradient_statistics);
  kernels::gradient_units.provide(Target::cpu, gradient_units);
  kernels::quantize.provide(Target::cpu, quantize);
  kernels::norm_quantize.provide(Target::cpu, norm_quantize);
  kernels::dequantize_add.provide(Target::cpu, dequantize_add);
}

}  // namespace tern::cpu
