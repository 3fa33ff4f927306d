#pragma once

#include <algorithm>

#include "tern/core/random.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {

/// The inputs of Philox for the blocks of `stream`.
inline simd::DrawKeys draw_keys(const RandomStream& stream) {
  simd::DrawKeys keys;
  auto key = stream.key();
  for (auto& round : keys.key) {
    std::ranges::copy(key, round);
    key = philox_next_key(key);
  }
  const auto counter = stream.counter(0);
  std::copy(counter.begin() + 1, counter.end(), keys.counter);
  return keys;
}

}  // namespace tern::cpu
