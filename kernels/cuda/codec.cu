#include <algorithm>
#include <bit>
#include <vector>

#include "tern/kernels/codec.h"
#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/recorded_step.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// A bucket whose elements are summed has no more of them than its tensor has, so that it needs no more scratch.
int64_t summed_width(int64_t n, int64_t bucket) { return bucket == 0 ? n : std::min(bucket, n); }

void gradient_statistics(std::span<const kernels::MeasuredGradient> message, int64_t bucket) {
  kernels::check_statistics(message, bucket);
  std::vector<BucketSums> sums;
  for (const auto& [g, statistics] : message)
    if (g.numel() != 0)
      sums.push_back({g.data<float>(), g.numel(), summed_width(g.numel(), bucket), statistics.data<double>(), nullptr});
  sum_buckets("gradient_statistics", kernels::placement(message).device(), sums, {});
}

void gradient_units(std::span<const kernels::UnitGradient> message, const kernels::UnitRule& rule, int64_t bucket) {
  kernels::check_units(message, rule, bucket);
  std::vector<BucketSums> sums;
  for (const auto& [g, units] : message)
    if (g.numel() != 0)
      sums.push_back({g.data<float>(), g.numel(), summed_width(g.numel(), bucket), nullptr, units.data<float>()});
  sum_buckets("gradient_units", kernels::placement(message).device(), sums, rule);
}

using kernels::BucketNorm;
using kernels::CodedGradient;

struct Coded {
  const float* g;
  float* units;
  uint8_t* codes;
  int64_t numel;
  BucketWidth bucket;
  RandomKey key;
  const float* clips;
};

/// This lane's element of each group of a tile; zeros beyond the end.
struct TileElements {
  __device__ TileElements(const float* g, int64_t first, int64_t numel) {
    for_each_group(first, numel, [&](int j, int64_t e) { x[j] = g[e]; });
  }
  float x[kTileGroups] = {};
};

/// x[i] for an array in registers, which cannot be indexed at run time.
__device__ float pick(const float (&x)[kTileGroups], int i) {
  float picked = 0;
#pragma unroll
  for (int j = 0; j < kTileGroups; ++j) picked = i == j ? x[j] : picked;
  return picked;
}

/// Units that the caller gives.
struct GivenUnits {
  static constexpr bool kClips = false;

  __device__ auto operator()(const Coded& of, int64_t, const TileElements&) const {
    return [units = of.units](int64_t bucket) { return units[bucket]; };
  }
};

/// Units and clips that the caller gives.
struct GivenUnitsAndClips : GivenUnits {
  static constexpr bool kClips = true;
};

/// Units of buckets that lie completely in one tile, computed from the elements in registers. Lane k gets the unit of
/// bucket k of the tile.
struct OwnUnits {
  static constexpr bool kClips = false;
  kernels::UnitRule rule;  // of l2 or max

  __device__ auto operator()(const Coded& of, int64_t first, const TileElements& tile) const {
    const int lane = lane_id(), groups = static_cast<int>(of.bucket.width) / kWarp;  // groups: 1, 2, 4, 8 or 16
    int number = 0;
    double squares = 0, own_squares = 0;
    float largest = 0, own_largest = 0;
#pragma unroll
    for (int j = 0; j < kTileGroups; ++j) {
      // The elements of one of the sixteen sums lie in two lanes, and both lanes add them up. Their squares are exact.
      const float x = tile.x[j], other = __shfl_xor_sync(~0u, x, kernels::kStatisticsLanes);
      const double before = lane < kernels::kStatisticsLanes ? x : other,
                   after = lane < kernels::kStatisticsLanes ? other : x;
      squares = fma(after, after, fma(before, before, squares));
      largest = fmaxf(largest, fabsf(x));
      if (((j + 1) & (groups - 1)) != 0) continue;
      for (int bit = kernels::kStatisticsLanes / 2; bit > 0; bit /= 2) squares += __shfl_xor_sync(~0u, squares, bit);
      largest = fold_group<kWarp>(largest, [](float a, float b) { return fmaxf(a, b); });
      const bool exists = first + (j + 1 - groups) * kWarp < of.numel;
      if (exists && lane >= number++) {
        own_squares = squares;
        own_largest = largest;
      }
      squares = largest = 0;
    }
    const float unit = kernels::codec_unit(rule, {own_largest, 0, own_squares}, of.bucket.width);
    if (lane < number) of.units[first / of.bucket.width + lane] = unit;
    return [unit](int64_t) { return unit; };
  }
};

template <class Slots, class Units>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    quantize_kernel(Units units, int bits, float limit, const int64_t* recorded_step,
                    const __grid_constant__ ItemTable<Coded> table) {
  const auto place = table.place();
  const Coded& of = place.entry;
  const int64_t first = (place.block * kTilesPerBlock + threadIdx.x / kWarp) * kTile;
  if (first >= of.numel) return;
  TileElements tile(of.g, first, of.numel);
  if constexpr (Units::kClips) {
    float clips[kTileGroups];
    spread(
        of.bucket, first, of.numel, [&](int64_t bucket) { return of.clips[bucket]; }, clips);
#pragma unroll
    for (int j = 0; j < kTileGroups; ++j) tile.x[j] = kernels::codec_clipped(tile.x[j], clips[j]);
  }
  const auto unit = units(of, first, tile);
  float factors[kTileGroups];
  spread(
      of.bucket, first, of.numel, [&](int64_t bucket) { return kernels::codec_factor(unit(bucket)); }, factors);
  const auto stream_now = [&] {
    RandomKey key = of.key;
    key.step = step_now(recorded_step, key.step);
    return RandomStream(key);
  };
  const auto lane = static_cast<uint64_t>(first) + lane_id();
  const std::array<uint32_t, 4> draws[2] = {kernels::codec_block(stream_now(), lane),
                                            kernels::codec_block(stream_now(), lane + kernels::kCodecChunk)};
#pragma unroll
  for (int word = 0; word < Slots::kWords; ++word) {
    uint32_t codes = 0;
    bool decided = true;
#pragma unroll
    for (int k = 0; k < Slots::kGroups; ++k) {
      const int j = word * Slots::kGroups + k;
      const float scaled = kernels::codec_scaled(tile.x[j], factors[j], limit);
      const uint32_t sum =
          static_cast<uint32_t>(scaled) + kernels::codec_half(draws[j / kChunkGroups], j % kChunkGroups);
      decided = decided && kernels::codec_decides(sum);
      codes |= kernels::codec_code(tile.x[j], sum >> 16) << (k * Slots::kBits);
    }
    if (__ballot_sync(~0u, !decided) != 0) {     // about once in 65536 elements: the word again, with all random bits
      const RandomStream stream = stream_now();  // again: this leaves registers to the path that is usual
      codes = 0;
#pragma unroll 1
      for (int k = 0; k < Slots::kGroups; ++k) {
        const int j = word * Slots::kGroups + k;
        const uint64_t e = lane + static_cast<uint64_t>(j) * kWarp;
        const float x = pick(tile.x, j);
        const uint32_t level =
            kernels::codec_level(kernels::codec_scaled(x, pick(factors, j), limit), kernels::codec_draw(stream, e),
                                 [&] { return kernels::codec_further_draw(stream, e); });
        codes |= kernels::codec_code(x, level) << (k * Slots::kBits);
      }
    }
    const auto plane = Slots::plane(of.numel, bits, first / kWarp, word);
    store_bytes(of.codes + plane.at, plane.bytes(), transpose_bits(codes) & plane.mask());
  }
}

std::vector<Coded> entries_of(std::span<const CodedGradient> message, int64_t bucket) {
  std::vector<Coded> entries;
  for (const auto& [g, unit, codes, key, clips] : message)
    if (g.numel() != 0)
      entries.push_back({g.data<float>(), unit.data<float>(), codes.data<uint8_t>(), g.numel(),
                         BucketWidth(bucket == 0 ? g.numel() : bucket), key,
                         clips.defined() ? clips.data<float>() : nullptr});
  return entries;
}

template <class Units>
void run(const char* operation, std::span<const CodedGradient> message, int64_t bucket, int64_t levels, Units units) {
  const std::vector<Coded> entries = entries_of(message, bucket);
  const int bits = kernels::code_bits(levels);
  const float limit = 65536.0f * static_cast<float>(levels);
  visit_slots(bits, [&]<class Slot>(Slot) {
    for_each_table(
        std::span<const Coded>(entries), [](const Coded& of) { return tile_blocks(of.numel); },
        [&](const auto& table) {
          launch(operation, kernels::placement(message).device(), table.grid(), quantize_kernel<Slot, Units>, units,
                 bits, limit, recorded_step(), table);
        });
  });
}

void quantize(std::span<const CodedGradient> message, int64_t bucket, int64_t levels) {
  kernels::check_quantize("quantize", message, bucket, levels);
  if (!message.empty() && message.front().clips.defined())
    run("quantize", message, bucket, levels, GivenUnitsAndClips{});
  else
    run("quantize", message, bucket, levels, GivenUnits{});
}

void norm_quantize(std::span<const CodedGradient> message, BucketNorm norm, int64_t bucket, int64_t levels) {
  kernels::check_quantize("norm_quantize", message, bucket, levels);
  if (bucket >= kWarp && kTile % bucket == 0)
    return run("norm_quantize", message, bucket, levels, OwnUnits{{norm, levels}});
  std::vector<kernels::UnitGradient> gradients;
  for (const auto& [g, units, codes, key, clips] : message) gradients.push_back({g, units});
  gradient_units(gradients, {norm, levels}, bucket);
  run("norm_quantize", message, bucket, levels, GivenUnits{});
}

using kernels::DecodedGradient;

/// Codes and units of the first message. Those of the next message lie a fixed number of bytes further.
struct Decoded {
  float* sum;
  const uint8_t *codes, *units;
  int64_t numel;
  BucketWidth bucket;
};

struct Messages {
  int64_t count, codes_step, units_step;
};

template <class Slots>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    dequantize_kernel(Messages messages, int bits, const __grid_constant__ ItemTable<Decoded> table) {
  const auto place = table.place();
  const Decoded& of = place.entry;
  const int64_t first = (place.block * kTilesPerBlock + threadIdx.x / kWarp) * kTile;
  if (first >= of.numel) return;
  float sums[kTileGroups] = {};
  for_each_group(first, of.numel, [&](int j, int64_t e) { sums[j] = of.sum[e]; });
  for (int64_t message = 0; message < messages.count; ++message) {
    const uint8_t* const codes = of.codes + message * messages.codes_step;
    const uint8_t* const units = of.units + message * messages.units_step;
    float values[kTileGroups];
    spread(
        of.bucket, first, of.numel,
        [&](int64_t bucket) { return std::bit_cast<float>(load_bytes(units + 4 * bucket, 4)); }, values);
#pragma unroll
    for (int word = 0; word < Slots::kWords; ++word) {
      const auto plane = Slots::plane(of.numel, bits, first / kWarp, word);
      const uint32_t own = transpose_bits(load_bytes(codes + plane.at, plane.bytes()));
#pragma unroll
      for (int k = 0; k < Slots::kGroups; ++k) {
        const int j = word * Slots::kGroups + k;
        const uint32_t code = own >> (k * Slots::kBits) & Slots::kCode;
        const float magnitude = static_cast<float>(code >> 1) * values[j];
        sums[j] += (code & 1u) != 0 ? -magnitude : magnitude;
      }
    }
  }
  for_each_group(first, of.numel, [&](int j, int64_t e) { of.sum[e] = sums[j]; });
}

void dequantize_add(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                    int64_t bucket, int64_t levels) {
  kernels::check_dequantize(message, messages, units, bucket, levels);
  const auto* const codes = messages.data<uint8_t>();
  const auto* const first_units =
      units.defined() ? reinterpret_cast<const uint8_t*>(units.data<float>()) : messages.data<uint8_t>();
  std::vector<Decoded> entries;
  for (const auto& [sum, first_unit, codes_at] : message)
    if (sum.numel() != 0)
      entries.push_back({sum.data<float>(), codes + codes_at, first_units + 4 * first_unit, sum.numel(),
                         BucketWidth(bucket == 0 ? sum.numel() : bucket)});
  const Messages rows = {messages.size(0), messages.size(1), units.defined() ? 0 : messages.size(1)};
  const int bits = kernels::code_bits(levels);
  visit_slots(bits, [&]<class Slot>(Slot) {
    for_each_table(
        std::span<const Decoded>(entries), [](const Decoded& of) { return tile_blocks(of.numel); },
        [&](const auto& table) {
          launch("dequantize_add", messages.device(), table.grid(), dequantize_kernel<Slot>, rows, bits, table);
        });
  });
}

}  // namespace

void provide_codec() {
  kernels::gradient_statistics.provide(Target::cuda, gradient_statistics);
  kernels::gradient_units.provide(Target::cuda, gradient_units);
  kernels::quantize.provide(Target::cuda, quantize);
  kernels::norm_quantize.provide(Target::cuda, norm_quantize);
  kernels::dequantize_add.provide(Target::cuda, dequantize_add);
}

}  // namespace tern::cuda
