#pragma once

#include <cstdint>

#include "tern/core/random.h"

namespace tern {

/// Draws the random numbers of one generated example, in a fixed order.
class Chance {
 public:
  explicit Chance(const RandomStream& random) : random_(random) {}
  uint32_t below(uint32_t n) { return random_.below(next_++, n); }
  float uniform(float low, float high) { return low + (high - low) * random_.uniform(next_++); }
  /// Returns a value within ±spread; values near 0 are more likely (triangular distribution).
  float around_zero(float spread) {
    const float first = uniform(-0.5f, 0.5f), second = uniform(-0.5f, 0.5f);
    return spread * (first + second);
  }

 private:
  RandomStream random_;
  uint64_t next_ = 0;
};

}  // namespace tern
