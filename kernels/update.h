#pragma once

#include <span>

#include "tern/kernels/kernel.h"

// Optimizer updates: one fused pass over all parameters. Parameters, gradients and state have the same dtype, f32 or
// f64. Numbers that change from step to step are tensors [f64, rank 0] on the device of the parameters. A recorded
// update (see Recording) therefore reads the numbers of the step in which it runs.

namespace tern::kernels {

/// A parameter w [any shape], its gradient g, and its optimizer state. Tensors that are not used are undefined. All
/// tensors except `steps` have the same shape.
struct ParameterUpdate {
  Tensor w;
  Tensor g;           ///< on CUDA also bf16
  Tensor first;       ///< momentum v, or Adam's first moment
  Tensor second;      ///< Adam's second moment
  Tensor steps = {};  ///< [i64, rank 0] Adam's updates of w so far, for the bias correction; an update adds one
  Tensor copy = {};   ///< takes the new w too, in w's dtype or in bf16; of `sgd_update` and `adam_update`
};
inline const Tensor& placement(std::span<const ParameterUpdate> updates) {
  static const Tensor undefined;
  return updates.empty() ? undefined : updates.front().w;
}

/// g ← gradient_scale·g + weight_decay·w; v ← momentum·v + g; w ← w - lr·v, or w - lr·(g + momentum·v) with nesterov.
/// If momentum is 0: w ← w - lr·g. This is the form of torch.optim.SGD without dampening. The tensor g itself is not
/// written.
struct SgdSettings {
  Tensor lr = {};
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  Tensor gradient_scale = {};  ///< below 1 if gradients are clipped; 1 if undefined
};
inline constinit Kernel<void(std::span<const ParameterUpdate>, const SgdSettings&)> sgd_update{"sgd_update"};

/// Adam (Kingma and Ba, 2015). With `decoupled`: Loshchilov and Hutter's AdamW (w ← w·(1 - lr·weight_decay) before the
/// step).
struct AdamSettings {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  Tensor gradient_scale = {};
};
inline constinit Kernel<void(std::span<const ParameterUpdate>, const AdamSettings&)> adam_update{"adam_update"};

/// v ← momentum·v + gradient_scale·g. w becomes the direction v, or gradient_scale·g + momentum·v with nesterov.
struct MomentumSettings {
  double momentum = 0;
  bool nesterov = false;
  Tensor gradient_scale = {};
};
inline constinit Kernel<void(std::span<const ParameterUpdate>, const MomentumSettings&)> momentum_direction{
    "momentum_direction"};

inline constexpr double kLeastNorm = 1e-7;
/// x ← x · norm / (√squared_norm + kLeastNorm), with squared_norm [f64, rank 0] that of x.
inline constinit Kernel<void(Tensor& x, const Tensor& squared_norm, double norm)> set_norm{"set_norm"};

/// first ← first + (1 - decay)·(w - first): an exponential moving average of parameters. If w is equal to the average,
/// the average does not change.
inline constinit Kernel<void(std::span<const ParameterUpdate>, const Tensor& decay)> average_update{"average_update"};

/// sum [rank 0, f64] = Σ g² over all gradients, in a fixed order.
inline constinit Kernel<void(std::span<const ParameterUpdate>, Tensor& sum)> squared_norm{"squared_norm"};

/// min(1, max_norm / (norm + 1e-6)), and NaN for NaN.
constexpr double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}
/// scale = clip_factor(√squared_norm, max_norm), as torch.nn.utils.clip_grad_norm_. Both tensors are [rank 0, f64].
inline constinit Kernel<void(const Tensor& squared_norm, double max_norm, Tensor& scale)> clip_scale{"clip_scale"};

}  // namespace tern::kernels
