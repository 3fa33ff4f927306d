#include "tern/kernels/cpu/codec/loops.h"

#include "tern/kernels/cpu/vector.h"

namespace tern::cpu::codec {

const Loops& loops() {
  switch (vector_set()) {
    case VectorSet::baseline: break;
    case VectorSet::avx2: return avx2_loops;
    case VectorSet::avx512: return avx512_loops;
  }
  return baseline_loops;
}

}  // namespace tern::cpu::codec
