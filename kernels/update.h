#pragma once

#include <span>

#include "tern/kernels/kernel.h"

// Optimizer updates: one fused pass over all parameters at once. Parameters, gradients and state are of one
// dtype, f32 or f64.

namespace tern::kernels {

/// A parameter w [any shape], its gradient g, and its optimizer state (unused tensors undefined). All share shape.
struct ParameterUpdate {
  Tensor w, g;
  Tensor first;   ///< momentum v, or Adam's first moment
  Tensor second;  ///< Adam's second moment
};
inline const Tensor& placement(std::span<const ParameterUpdate> updates) {
  static const Tensor undefined;
  return updates.empty() ? undefined : updates.front().w;
}

/// g ← gradient_scale·g + weight_decay·w; v ← momentum·v + g; w ← w - lr·v, or, with nesterov, w - lr·(g + momentum·v).
/// momentum 0: w ← w - lr·g. torch.optim.SGD's form without dampening. g itself is not written.
struct SgdSettings {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  double gradient_scale = 1;  ///< below 1 where gradients are clipped
};
inline constinit Kernel<void(std::span<const ParameterUpdate>, const SgdSettings&)> sgd_update{"sgd_update"};

/// Kingma and Ba, 2015; `decoupled`: Loshchilov and Hutter's AdamW (w ← w·(1 - lr·weight_decay) before the step).
struct AdamSettings {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  double gradient_scale = 1;
  int64_t step = 1;  ///< counted from 1, for the bias correction
};
inline constinit Kernel<void(std::span<const ParameterUpdate>, const AdamSettings&)> adam_update{"adam_update"};

/// first ← decay·first + (1 - decay)·w: an exponential moving average of parameters.
inline constinit Kernel<void(std::span<const ParameterUpdate>, double decay)> average_update{"average_update"};

/// sum [rank 0, f64] = Σ g² over all, in a fixed order.
inline constinit Kernel<void(std::span<const ParameterUpdate>, Tensor& sum)> squared_norm{"squared_norm"};

}  // namespace tern::kernels
