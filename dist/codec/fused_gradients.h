#pragma once

#include <span>
#include <string>
#include <vector>

#include "tern/core/random.h"
#include "tern/core/tensor.h"

namespace tern {

/// Names a gradient. `name` is the tensor's name, for messages and state. `key` selects its random numbers: the purpose
/// is codec, the owner is the rank that encodes.
struct GradientTag {
  std::string name;
  RandomKey key;
};

/// One rank's gradient of a tensor: f32, row-major.
struct TaggedGradient {
  GradientTag tag;  ///< key.owner is this rank
  Tensor gradient;
};

/// Gradients that travel as one message, all on one device. Each tensor keeps its own scalers, tables and random
/// numbers.
using FusedGradients = std::vector<TaggedGradient>;
std::vector<Tensor> tensors_of(const FusedGradients& message);
/// A tag that names the whole message.
GradientTag tag_of(const FusedGradients& message);
/// gradient - minus, a new tensor.
Tensor difference(const Tensor& gradient, const Tensor& minus);
/// The message in which gradient i is `difference(gradient i, minus[i])`, if minus[i] is defined.
FusedGradients differences(FusedGradients message, std::span<const Tensor> minus);

/// Tensors in one piece of memory, one after the other, on the device of the first.
struct FlatTensors {
  Tensor whole;               ///< f32 [n]
  std::vector<Tensor> parts;  ///< views of `whole`

  /// Zeros with the shapes of these tensors.
  static FlatTensors zeros(std::span<const Tensor> tensors);
  static FlatTensors zeros(const FusedGradients& message);
  /// Tensor i is gradient i - minus[i], if minus[i] is defined. An empty `minus` has none.
  static FlatTensors copy(const FusedGradients& message, std::span<const Tensor> minus = {});
};
/// Turns sums over `ranks` ranks into means, in place.
std::vector<Tensor> means(FlatTensors sums, int ranks);

}  // namespace tern
