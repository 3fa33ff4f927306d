#include "tern/kernels/trits.h"

#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::PackedTensor;

constexpr int64_t kGrain = 1 << 12;  // bytes or groups of a thread, at least

void trit_pack(std::span<const PackedTensor> message, Tensor& bytes) {
  kernels::check_trits("trit_pack", message, bytes);
  uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    next = std::ranges::copy(prefix.span<uint8_t>(), next).out;
    const int64_t count = kernels::packed_trit_bytes(numel), n = numel;
    parallel_for(0, count, kGrain, [=, planes = codes.data<uint8_t>()](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) next[at] = kernels::trit_byte(planes, n, at);
    });
    next += count;
  }
}

void trit_unpack(std::span<const PackedTensor> message, const Tensor& bytes) {
  kernels::check_trits("trit_unpack", message, bytes);
  const uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    std::copy_n(next, prefix.numel(), prefix.data<uint8_t>());
    next += prefix.numel();
    const int64_t groups = (numel + kernels::kCodecGroup - 1) / kernels::kCodecGroup, n = numel;
    parallel_for(0, groups, kGrain, [=, planes = codes.data<uint8_t>()](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        uint32_t words[2] = {};
        const int elements = kernels::codec_plane(n, 2, group, 0).elements;
        for (int i = 0; i < elements; ++i) {
          const int64_t e = group * kernels::kCodecGroup + i;
          const uint32_t byte = next[e / kernels::kNumbersPerByte];
          check(byte < 243, "trit_unpack: a byte is ", byte, ", expected at most 242");
          const uint32_t code = kernels::trit_code(byte, e % kernels::kNumbersPerByte);
          for (int bit = 0; bit < 2; ++bit) words[bit] |= (code >> bit & 1u) << i;
        }
        for (int bit = 0; bit < 2; ++bit) {
          const auto plane = kernels::codec_plane(n, 2, group, bit);
          for (int i = 0; i < plane.bytes(); ++i) planes[plane.at + i] = static_cast<uint8_t>(words[bit] >> (8 * i));
        }
      }
    });
    next += kernels::packed_trit_bytes(numel);
  }
}

}  // namespace

void provide_trits() {
  kernels::trit_pack.provide(Target::cpu, trit_pack);
  kernels::trit_unpack.provide(Target::cpu, trit_unpack);
}

}  // namespace tern::cpu
