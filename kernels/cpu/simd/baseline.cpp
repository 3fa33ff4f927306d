#include "tern/kernels/cpu/simd/make_kernels.h"
#include "tern/kernels/cpu/vector.h"

namespace tern::cpu::simd {

constinit const Kernels baseline_kernels = make_kernels<4>(&baseline_codec_loops);

const Kernels& kernels() { return of_vector_set(baseline_kernels, avx2_kernels, avx512_kernels); }

}  // namespace tern::cpu::simd
