#include "tern/kernels/cpu/simd/make_kernels.h"
#include "tern/kernels/cpu/vector.h"

namespace tern::cpu::simd {

constinit const Kernels baseline_kernels = make_kernels<4>(&baseline_codec_loops);

const Kernels& kernels() {
  switch (vector_set()) {
    case VectorSet::baseline: break;
    case VectorSet::avx2: return avx2_kernels;
    case VectorSet::avx512: return avx512_kernels;
  }
  return baseline_kernels;
}

}  // namespace tern::cpu::simd
