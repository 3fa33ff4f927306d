#include "tern/kernels/cpu/simd/product.h"

namespace tern::cpu::simd {

constinit const Kernels avx2_kernels{.width = 8, .multiply = multiply<8>};

}  // namespace tern::cpu::simd
