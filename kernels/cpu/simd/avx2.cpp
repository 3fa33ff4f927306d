#include "tern/kernels/cpu/simd/make_kernels.h"

namespace tern::cpu::simd {

constinit const Kernels avx2_kernels = make_kernels<8>(&avx2_codec_loops);

}  // namespace tern::cpu::simd
