#pragma once

#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

/// While one lives, loops run as on a processor with no wider vectors than `set`: so tests reach what other processors
/// run. One at a time, made and destroyed while no kernel runs.
class NarrowerVectors {
 public:
  explicit NarrowerVectors(VectorSet set);
  ~NarrowerVectors();
  NarrowerVectors(const NarrowerVectors&) = delete;
  NarrowerVectors& operator=(const NarrowerVectors&) = delete;
};

}  // namespace tern::cpu
