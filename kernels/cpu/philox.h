#pragma once

#include "tern/core/random.h"

namespace tern::cpu {

/// words[e] = word 4·block + e of `stream` for e in [0, 4·Blocks): round by round over all blocks, which vectorises.
template <int Blocks>
void philox_words(const RandomStream& stream, uint32_t block, uint32_t* words) {
  uint32_t w0[Blocks], w1[Blocks], w2[Blocks], w3[Blocks];
  const auto counter = stream.counter(block);
  for (int i = 0; i < Blocks; ++i) {
    w0[i] = counter[0] + static_cast<uint32_t>(i);
    w1[i] = counter[1];
    w2[i] = counter[2];
    w3[i] = counter[3];
  }
  auto key = stream.key();
  for (int round = 0; round < kPhiloxRounds; ++round, key = philox_next_key(key)) {
    for (int i = 0; i < Blocks; ++i) {
      const auto next = philox_round({w0[i], w1[i], w2[i], w3[i]}, key);
      w0[i] = next[0];
      w1[i] = next[1];
      w2[i] = next[2];
      w3[i] = next[3];
    }
  }
  for (int i = 0; i < Blocks; ++i) {
    words[4 * i] = w0[i];
    words[4 * i + 1] = w1[i];
    words[4 * i + 2] = w2[i];
    words[4 * i + 3] = w3[i];
  }
}

}  // namespace tern::cpu
