#pragma once

#include "tern/dist/exchange.h"

namespace tern {

/// Tensors of the shapes of a message, one after the other in one, beside its gradients.
struct FlatTensors {
  Tensor whole;               ///< f32 [n]
  std::vector<Tensor> parts;  ///< views of it

  static FlatTensors zeros(const FusedGradients& message);
  static FlatTensors copy(const FusedGradients& message);
};

/// Sums over `ranks` ranks become means, in place.
std::vector<Tensor> means(FlatTensors sums, int ranks);

}  // namespace tern
