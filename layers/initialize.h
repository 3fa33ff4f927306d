#pragma once

#include "tern/layers/module.h"

// First values of parameters: f32 draws from the stream of the parameter. They are the same on every machine.

namespace tern {

Initializer constant(double value);
Initializer normal(double deviation, double mean = 0);
/// Normal. Values beyond two deviations are drawn again, as in TensorFlow.
Initializer truncated_normal(double deviation, double mean = 0);
/// In [low, high).
Initializer uniform(double low, double high);

/// The number of connections that scales a deviation, for weights [out, in, ...]: those into an output (in · ...), or
/// those out of an input (out · ...).
enum class Fan : uint8_t { in, out };

/// Glorot and Bengio, 2010: variance gain² · 2 / (fan in + fan out).
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);

/// He et al., 2015: variance 2 / (1 + slope²) / fan, for a leaky ReLU of that slope.
struct KaimingOptions {
  double slope = 0;
  Fan fan = Fan::in;
};
Initializer kaiming_uniform(const KaimingOptions& options = {});
Initializer kaiming_normal(const KaimingOptions& options = {});

/// For weights [out, in/groups, kh, kw] with odd windows: output channel i of each group is input channel i of the
/// group, so that a convolution passes its input on (Zagoruyko and Komodakis, "DiracNets", 2017). As
/// torch.nn.init.dirac_(groups).
Initializer dirac(int64_t groups = 1);

/// PyTorch's default for weights of Linear and Conv2d: uniform in ±1/√fan_in.
Initializer default_weight();
/// The same for the bias that belongs to weights of `weight_shape`; 0 if they have no inputs.
Initializer default_bias(const Shape& weight_shape);

}  // namespace tern
