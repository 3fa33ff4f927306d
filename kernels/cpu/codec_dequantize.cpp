#include <algorithm>
#include <cstring>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/codec.h"
#include "tern/kernels/cpu/codec/chunks.h"

namespace tern::cpu {

using namespace tern::kernels;
using namespace tern::cpu::codec;

void dequantize_add(const Tensor& codes, const Tensor& units, int64_t bucket, int64_t levels, Tensor& sum) {
  check_quantize("dequantize_add", sum, units, bucket, levels, codes);
  const int64_t n = sum.numel(), width = bucket_width(n, bucket);
  const int bits = code_bits(levels);
  const float* unit = units.data<float>();
  float* y = sum.data<float>();
  const auto* bytes = codes.data<uint8_t>();
  const Loops& loop = loops();
  parallel_for(0, (n + kCodecChunk - 1) / kCodecChunk, kChunksPerThread, [&](int64_t begin, int64_t end) {
    BucketValues units_of(unit, width, [](float u) { return u; });
    uint32_t planes[kMostPlanes];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kCodecChunk, count = std::min(kCodecChunk, n - first);
      const float* values = units_of(first, count);
      const uint8_t* source = bytes + code_bytes(first, bits);
      for_each_plane(count, bits, [&](int64_t word, int64_t byte, int64_t size) {
        planes[word + (size + 3) / 4 - 1] = 0;
        std::memcpy(planes + word, source + byte, static_cast<size_t>(size));
      });
      const int64_t whole = count / kCodecGroup * kCodecGroup;
      for (int64_t i = 0; i < whole; i += kCodecGroup)
        loop.dequantize_add(planes + i / kCodecGroup * bits, bits, values + i, y + first + i);
      if (whole == count) continue;
      float rest[kCodecGroup] = {};
      std::copy_n(y + first + whole, count - whole, rest);
      loop.dequantize_add(planes + whole / kCodecGroup * bits, bits, values + whole, rest);
      std::copy_n(rest, count - whole, y + first + whole);
    }
  });
}

}  // namespace tern::cpu
