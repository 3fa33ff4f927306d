#include "tern/core/random.h"

#include <cmath>
#include <numbers>

namespace tern {

float RandomStream::normal(uint64_t element) const {
  const auto words = block(static_cast<uint32_t>(element >> 1));
  const auto pair = (element & 1) * 2;
  const double u = (static_cast<double>(words[pair]) + 1.0) * 0x1p-32;  // in (0, 1]
  const double angle = static_cast<double>(words[pair + 1]) * (0x1p-32 * 2.0 * std::numbers::pi);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

}  // namespace tern
