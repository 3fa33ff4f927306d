#include "tern/kernels/trits.h"

#include <algorithm>

#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using kernels::PackedTensor;

/// The number that a code stands for.
int number_of(uint32_t code) { return code == 0 ? 0 : code % 2 == 0 ? 1 : -1; }

void trit_pack(std::span<const PackedTensor> message, Tensor& bytes) {
  kernels::check_trits("trit_pack", message, bytes);
  uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    next = std::ranges::copy(prefix.span<uint8_t>(), next).out;
    for (int64_t first = 0; first < numel; first += 5) {
      int byte = 0, power = 1;
      for (int64_t i = first; i < first + 5; ++i, power *= 3) {
        uint32_t code = 0;
        for (int bit = 0; i < numel && bit < 2; ++bit) {
          const auto plane = kernels::codec_plane(numel, 2, i / 32, bit);
          code |= (codes.data<uint8_t>()[plane.at + i % 32 / 8] >> (i % 8) & 1u) << bit;
        }
        byte += (number_of(code) + 1) * power;
      }
      *next++ = static_cast<uint8_t>(byte);
    }
  }
}

void trit_unpack(std::span<const PackedTensor> message, const Tensor& bytes) {
  kernels::check_trits("trit_unpack", message, bytes);
  const uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    std::copy_n(next, prefix.numel(), prefix.data<uint8_t>());
    next += prefix.numel();
    std::ranges::fill(codes.span<uint8_t>(), uint8_t{0});
    for (int64_t i = 0; i < numel; ++i) {
      const int byte = next[i / 5];
      check(byte < 243, "trit_unpack: a byte is ", byte, ", expected at most 242");
      int digit = byte;
      for (int64_t place = 0; place < i % 5; ++place) digit /= 3;
      const uint32_t code = digit % 3 == 1 ? 0 : digit % 3 == 0 ? 3 : 2;
      for (int bit = 0; bit < 2; ++bit) {
        uint8_t& to = codes.data<uint8_t>()[kernels::codec_plane(numel, 2, i / 32, bit).at + i % 32 / 8];
        to = static_cast<uint8_t>(to | (code >> bit & 1u) << (i % 8));
      }
    }
    next += kernels::packed_trit_bytes(numel);
  }
}

}  // namespace

void provide_trits() {
  kernels::trit_pack.provide(Target::reference, trit_pack);
  kernels::trit_unpack.provide(Target::reference, trit_unpack);
}

}  // namespace tern::reference
