#pragma once

#include <functional>
#include <vector>

#include "tern/dist/codec/codec.h"

namespace tern::test {

/// A tensor of standard normal numbers.
inline Tensor gaussian(const Shape& shape, uint64_t seed = 1) {
  const RandomStream stream({.seed = seed, .purpose = Purpose::test});
  Tensor g = Tensor::empty(shape);
  for (size_t i = 0; i < g.span<float>().size(); ++i) g.span<float>()[i] = stream.normal(i);
  return g;
}

inline GradientTag tag(uint32_t rank = 0, uint32_t step = 0) {
  return {"conv1.weight", {.seed = 7, .purpose = Purpose::codec, .owner = rank, .step = step, .tensor = 4}};
}

inline std::vector<std::byte> encoded(GradientCodec& codec, const Tensor& g, const GradientTag& whose = tag()) {
  std::vector<std::byte> bytes;
  codec.encode(whose, g, bytes);
  return bytes;
}

inline Tensor decoded(const GradientCodec& codec, const std::vector<std::byte>& bytes, const Shape& shape) {
  Tensor sum = Tensor::zeros(shape);
  codec.decode_add(tag(), bytes, sum);
  return sum;
}

/// Encodes and decodes `g`.
inline Tensor through(GradientCodec& codec, const Tensor& g, const GradientTag& whose = tag()) {
  return decoded(codec, encoded(codec, g, whose), g.shape());
}

inline double squared_norm(const Tensor& g) {
  double sum = 0;
  for (const float x : g.span<float>()) sum += double{x} * x;
  return sum;
}
inline double squared_distance(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (size_t i = 0; i < a.span<float>().size(); ++i) {
    const double d = double{a.span<float>()[i]} - b.span<float>()[i];
    sum += d * d;
  }
  return sum;
}

}  // namespace tern::test
