#include "tern/layers/containers.h"

#include "tern/autograd/functional.h"

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
  return relu_ ? add_relu(y, other) : y + other;
}

}  // namespace tern
