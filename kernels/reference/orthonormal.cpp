#include "tern/kernels/orthonormal.h"

#include "tern/kernels/provide.h"

namespace tern::reference {

void provide_orthonormal() {
  kernels::orthonormalize.provide(Target::reference, kernels::orthonormalize_by_loops);
  kernels::keep_columns.provide(Target::reference, kernels::keep_columns_by_loops);
}

}  // namespace tern::reference
