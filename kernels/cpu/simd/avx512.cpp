#include "tern/kernels/cpu/simd/product.h"

namespace tern::cpu::simd {

constinit const Kernels avx512_kernels{.width = 16, .multiply = multiply<16>};

}  // namespace tern::cpu::simd
