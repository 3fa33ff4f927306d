#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/data/an4.h"
#include "tests/data/mfc_bytes.h"

namespace tern {

/// Cepstra of `frames` frames that differ everywhere.
inline std::vector<float> cepstra(int64_t frames, int64_t seed) {
  std::vector<float> numbers;
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t k = 0; k < An4::kCepstra; ++k)
      numbers.push_back(static_cast<float>((t * t + seed * k + 3 * k) % 17) - 8);
  return numbers;
}

inline Bytes text_bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// The files of a small corpus: two utterances for training, one for testing.
inline std::vector<std::pair<std::string, Bytes>> an4_corpus() {
  return {{"an4/etc/an4.dic", text_bytes("GO  G OW\nGO(2)  G AH\nNO  N OW\n")},
          {"an4/etc/an4_train.fileids", text_bytes("an4_clstk/a/one\nan4_clstk/b/two\n")},
          {"an4/etc/an4_train.transcription", text_bytes("GO NO (one)\nNO (two)\n")},
          {"an4/etc/an4_test.fileids", text_bytes("an4test_clstk/c/three\n")},
          {"an4/etc/an4_test.transcription", text_bytes("GO (three)\n")},
          {"an4/feat/an4_clstk/a/one.mfc", mfc(cepstra(20, 1))},
          {"an4/feat/an4_clstk/b/two.mfc", mfc(cepstra(7, 2))},
          {"an4/feat/an4test_clstk/c/three.mfc", mfc(cepstra(9, 5))}};
}

}  // namespace tern
