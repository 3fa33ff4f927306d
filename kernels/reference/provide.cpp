#include "tern/kernels/provide.h"

#include "tern/kernels/elementwise.h"
#include "tern/kernels/reference/elementwise.h"

namespace tern {

void provide_reference_kernels() {
  using enum Target;
  kernels::relu.provide(reference, tern::reference::relu);
}

}  // namespace tern
