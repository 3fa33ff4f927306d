#pragma once

#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu::simd {

extern const Kernels avx2_kernels, avx512_kernels;
extern const CodecLoops avx2_codec_loops, avx512_codec_loops;

}  // namespace tern::cpu::simd
