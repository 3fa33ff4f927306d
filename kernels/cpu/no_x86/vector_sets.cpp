#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

VectorSet detail::processor_vector_set() { return VectorSet::baseline; }

const simd::Kernels& simd::kernels() { return baseline_kernels; }

}  // namespace tern::cpu
