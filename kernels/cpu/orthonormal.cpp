#include "tern/kernels/orthonormal.h"

#include "tern/kernels/provide.h"

namespace tern::cpu {

void provide_orthonormal() {
  kernels::orthonormalize.provide(Target::cpu, kernels::orthonormalize_by_loops);
  kernels::keep_columns.provide(Target::cpu, kernels::keep_columns_by_loops);
}

}  // namespace tern::cpu
