#include "tern/layers/containers.h"

#include "tern/autograd/functional.h"
#include "tern/core/error.h"

namespace tern {

Variable Sequential::forward(const Variable& x) {
  Variable y = x;
  for (Layer* layer : layers_) y = (*layer)(y);
  return y;
}

Variable Branches::forward(const Variable& x) {
  std::vector<Variable> outputs;
  for (Layer* branch : branches_) outputs.push_back((*branch)(x));
  return concat(outputs, 1);
}

Variable Residual::forward(const Variable& x) {
  const Variable y = body(x), other = shortcut(x);
  check(y.shape() == other.shape(), "Residual: the body gives ", y.shape(), " and the shortcut ", other.shape(),
        ", expected equal shapes");
  return relu_ ? add_relu(y, other) : y + other;
}

}  // namespace tern
