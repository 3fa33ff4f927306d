#include "tern/kernels/cpu/simd/product.h"

namespace tern::cpu::simd {

constinit const Kernels baseline_kernels{.width = 4, .multiply = multiply<4>};

}  // namespace tern::cpu::simd
