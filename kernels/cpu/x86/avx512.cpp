#include "tern/kernels/cpu/simd/make_kernels.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {

constinit const Kernels avx512_kernels = make_kernels<16>(&avx512_codec_loops);

}  // namespace tern::cpu::simd
