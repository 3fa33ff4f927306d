#include "tern/layers/sequential.h"

namespace tern {

Variable Sequential::forward(const Variable& x) {
  Variable y = x;
  for (Module* layer : layers_) y = (*layer)(y);
  return y;
}

}  // namespace tern
