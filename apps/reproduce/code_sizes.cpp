#include "tern/apps/reproduce/code_sizes.h"

#include <cmath>
#include <cstdlib>

#include "tern/apps/reproduce/quantization_sample.h"
#include "tern/core/error.h"
#include "tern/dist/codec/entropy_coders.h"

namespace tern {

std::vector<int32_t> drawn_levels(const GradientCodec& codec, const Tensor& v, uint32_t step) {
  const ScaledCodec* scaled = codec.scaled();
  check(scaled != nullptr, "codec ", codec.spec(), " has no levels");
  const GradientTag tag = {"v", {.seed = 1, .purpose = Purpose::codec, .step = step}};
  const Tensor scalers = scaled->scalers(tag, v);
  std::vector<std::byte> codes;
  scaled->append_codes(tag, v, scalers, codes);
  Tensor levels = Tensor::zeros(v.shape());
  scaled->add_codes(codes, Tensor::full(scalers.shape(), 1), levels);
  return {levels.span<float>().begin(), levels.span<float>().end()};
}

EliasBits elias_bits(std::span<const int32_t> levels) {
  EliasBits bits;
  uint64_t nonzeros = 0, distance = 0;
  for (const int32_t level : levels) {
    const auto size = static_cast<uint64_t>(std::abs(level));
    bits.dense += omega_bits(size + 1) + (size != 0);
    ++distance;
    if (size == 0) continue;
    bits.sparse += omega_bits(distance) + 1 + omega_bits(size);
    distance = 0;
    ++nonzeros;
  }
  bits.sparse += omega_bits(nonzeros + 1);
  return bits;
}

double theorem_bits(double n, double s) {
  const double nonzeros = nonzeros_bound(n, s);
  return (3 + 1.5 * std::log2(2 * (s * s + n) / nonzeros)) * nonzeros + 32;
}

double corollary_bits(double n) { return 2.8 * n + 32; }

}  // namespace tern
