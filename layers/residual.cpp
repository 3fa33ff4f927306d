#include "tern/layers/residual.h"

#include "tern/autograd/arithmetic.h"

namespace tern {

Variable Residual::forward(const Variable& x) {
  const Variable y = body(x), other = shortcut(x);
  return relu_ ? add_relu(y, other) : y + other;
}

}  // namespace tern
