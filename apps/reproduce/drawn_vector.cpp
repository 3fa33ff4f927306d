#include "tern/apps/reproduce/drawn_vector.h"

#include <algorithm>
#include <cmath>

#include "tern/core/random.h"

namespace tern {
namespace {

constexpr Distribution kAll[] = {Distribution::gauss, Distribution::uniform, Distribution::laplace,
                                 Distribution::constant};
constexpr const char* kNames[] = {"Gauss", "uniform", "Laplace", "constant"};

float draw(Distribution distribution, const RandomStream& stream, uint64_t element) {
  const float centred = 2 * stream.uniform(element) - 1;
  switch (distribution) {
    case Distribution::gauss: return stream.normal(element);
    case Distribution::uniform: return centred;
    case Distribution::laplace: return std::copysign(std::log1p(-std::min(std::abs(centred), 1 - 0x1p-24f)), centred);
    case Distribution::constant: return std::copysign(1.0f, centred);
  }
  return 0;
}

}  // namespace

std::span<const Distribution> distributions() { return kAll; }

const char* to_string(Distribution distribution) { return kNames[static_cast<size_t>(distribution)]; }

Tensor drawn_vector(Distribution distribution, int64_t n, uint64_t seed) {
  const RandomStream stream({.seed = seed, .purpose = Purpose::initialize});
  Tensor vector = Tensor::empty({n});
  uint64_t element = 0;
  for (float& value : vector.span<float>()) value = draw(distribution, stream, element++);
  return vector;
}

}  // namespace tern
