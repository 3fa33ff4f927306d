#include "tern/kernels/cpu/simd/make_kernels.h"

namespace tern::cpu::simd {

constinit const Kernels baseline_kernels = make_kernels<4>(&baseline_codec_loops);

}  // namespace tern::cpu::simd
