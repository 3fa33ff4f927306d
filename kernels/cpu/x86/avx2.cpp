#include "tern/kernels/cpu/simd/make_kernels.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {

constinit const Kernels avx2_kernels = make_kernels<8>(&avx2_codec_loops);

}  // namespace tern::cpu::simd
