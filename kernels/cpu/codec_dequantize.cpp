#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/codec.h"
#include "tern/kernels/cpu/codec/chunks.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;
using namespace tern::cpu::codec;

/// The codes of one gradient in every message: `count` rows of bytes, and as many of units, or one for all.
struct Rows {
  const uint8_t* codes;
  const float* units;
  int64_t count, bytes_between, units_between;
};

/// y[count], count at most a chunk, += its codes · units.
void add_chunk(const uint8_t* codes, const float* units, int64_t count, int bits, float* y) {
  uint32_t planes[kMostPlanes];
  for_each_plane(count, bits, [&](int64_t word, int64_t byte, int64_t size) {
    planes[word + (size + 3) / 4 - 1] = 0;
    std::memcpy(planes + word, codes + byte, static_cast<size_t>(size));
  });
  const Loops& loop = loops();
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
    const auto as_it_is = [](float unit) { return unit; };
    std::vector<BucketValues<decltype(as_it_is)>> units_of;
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

}  // namespace

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

}  // namespace tern::cpu
