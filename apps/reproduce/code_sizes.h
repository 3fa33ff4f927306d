#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/dist/codec/codec.h"

namespace tern {

/// The whole numbers that a codec of one scaler a bucket draws for `v` in one step.
std::vector<int32_t> drawn_levels(const GradientCodec& codec, const Tensor& v, uint32_t step);

/// Bits of one message of levels, beside the norm's 32.
struct EliasBits {
  int64_t sparse = 0;  ///< QSGD section 3.1: distances between non-zeros, signs, sizes; after the count of non-zeros
  int64_t dense = 0;   ///< for every element its size plus 1, and a sign unless it is zero
};
EliasBits elias_bits(std::span<const int32_t> levels);

/// Theorem 3.2, its o(1) taken as 0: (3 + 3/2 log₂(2(s² + n) / (s(s + √n)))) s(s + √n) + 32 bits a message.
double theorem_bits(double n, double s);
/// Corollary 3.3, s = √n: 2.8n + 32 bits a message.
double corollary_bits(double n);

}  // namespace tern
