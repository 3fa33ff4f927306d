#include "tern/kernels/trits.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tern/core/parallel.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::PackedTensor;

/// Five groups of elements are 32 bytes.
constexpr int64_t kGroups = kernels::kNumbersPerByte, kElements = kGroups * kernels::kCodecGroup,
                  kBytes = kElements / kernels::kNumbersPerByte;
constexpr int64_t kGrain = 256;  // such blocks of a thread, at least

/// The byte for five signs and, above them, five levels; and the way back.
constexpr auto kByteOf = [] {
  std::array<uint8_t, 1024> bytes{};
  for (uint32_t bits = 0; bits < bytes.size(); ++bits)
    for (uint32_t i = 0, power = 1; i < 5; ++i, power *= 3) {
      const bool is_negative = (bits >> i & 1u) != 0, is_zero = (bits >> (5 + i) & 1u) == 0;
      bytes[bits] = static_cast<uint8_t>(bytes[bits] + power * (is_zero ? 1 : is_negative ? 0 : 2));
    }
  return bytes;
}();
constexpr auto kBitsOf = [] {
  std::array<uint16_t, 243> bits{};
  for (uint32_t byte = 0; byte < bits.size(); ++byte)
    for (uint32_t i = 0; i < 5; ++i) {
      const uint32_t code = kernels::trit_code(byte, i);
      bits[byte] = static_cast<uint16_t>(bits[byte] | (code & 1u) << i | (code >> 1) << (5 + i));
    }
  return bits;
}();

/// Packs a block. `planes` holds a word of signs and a word of levels for each group.
void pack_block(const uint8_t* planes, uint8_t* bytes) {
  uint32_t words[kGroups][2];
  std::memcpy(words, planes, sizeof words);
  uint64_t signs = 0, levels = 0;  // the next bits, of which there are `held`
  for (int held = 0, group = 0, at = 0; at < kBytes; ++at, held -= 5, signs >>= 5, levels >>= 5) {
    if (held < 5) {
      signs |= uint64_t{words[group][0]} << held;
      levels |= uint64_t{words[group][1]} << held;
      ++group;
      held += 32;
    }
    bytes[at] = kByteOf[(signs & 31u) | (levels & 31u) << 5];
  }
}

void check_byte(uint32_t byte) { check(byte < 243, "trit_unpack: a byte is ", byte, ", expected at most 242"); }

void unpack_block(const uint8_t* bytes, uint8_t* planes) {
  uint32_t words[kGroups][2];
  uint64_t signs = 0, levels = 0;  // bits for the next words, of which there are `held`
  for (int held = 0, group = 0, at = 0; at < kBytes; ++at) {
    check_byte(bytes[at]);
    const uint32_t bits = kBitsOf[bytes[at]];
    signs |= uint64_t{bits & 31u} << held;
    levels |= uint64_t{bits >> 5} << held;
    held += 5;
    if (held < 32) continue;
    words[group][0] = static_cast<uint32_t>(signs);
    words[group++][1] = static_cast<uint32_t>(levels);
    signs >>= 32;
    levels >>= 32;
    held -= 32;
  }
  std::memcpy(planes, words, sizeof words);
}

void trit_pack(std::span<const PackedTensor> message, Tensor& bytes) {
  kernels::check_trits("trit_pack", message, bytes);
  uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    next = std::ranges::copy(prefix.span<uint8_t>(), next).out;
    const int64_t count = kernels::packed_trit_bytes(numel), blocks = numel / kElements;
    const auto* const planes = codes.data<uint8_t>();
    parallel_for(0, blocks, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) pack_block(planes + block * 8 * kGroups, next + block * kBytes);
    });
    for (int64_t at = blocks * kBytes; at < count; ++at) next[at] = kernels::trit_byte(planes, numel, at);
    next += count;
  }
}

void trit_unpack(std::span<const PackedTensor> message, const Tensor& bytes) {
  kernels::check_trits("trit_unpack", message, bytes);
  const uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    std::copy_n(next, prefix.numel(), prefix.data<uint8_t>());
    next += prefix.numel();
    auto* const planes = codes.data<uint8_t>();
    const int64_t blocks = numel / kElements, first = blocks * kGroups;
    parallel_for(0, blocks, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        unpack_block(next + block * kBytes, planes + block * 8 * kGroups);
    });
    for (int64_t group = first; group * kernels::kCodecGroup < numel; ++group) {
      uint32_t words[2] = {};
      const int elements = kernels::codec_plane(numel, 2, group, 0).elements;
      for (int i = 0; i < elements; ++i) {
        const int64_t e = group * kernels::kCodecGroup + i;
        const uint32_t byte = next[e / kernels::kNumbersPerByte];
        check_byte(byte);
        const uint32_t code = kernels::trit_code(byte, e % kernels::kNumbersPerByte);
        for (int bit = 0; bit < 2; ++bit) words[bit] |= (code >> bit & 1u) << i;
      }
      for (int bit = 0; bit < 2; ++bit) {
        const auto plane = kernels::codec_plane(numel, 2, group, bit);
        for (int i = 0; i < plane.bytes(); ++i) planes[plane.at + i] = static_cast<uint8_t>(words[bit] >> (8 * i));
      }
    }
    next += kernels::packed_trit_bytes(numel);
  }
}

}  // namespace

void provide_trits() {
  kernels::trit_pack.provide(Target::cpu, trit_pack);
  kernels::trit_unpack.provide(Target::cpu, trit_unpack);
}

}  // namespace tern::cpu
