#pragma once

#include "tern/layers/module.h"

// First values of parameters: f32 draws from the parameter's own stream, the same on every machine.

namespace tern {

Initializer constant(double value);
Initializer normal(double deviation, double mean = 0);
/// Normal, drawn again where it lies beyond two deviations, as TensorFlow's.
Initializer truncated_normal(double deviation, double mean = 0);
/// In [low, high).
Initializer uniform(double low, double high);

/// Which number of connections a deviation is scaled by, for weights [out, in, ...]: those into an output (in · ...)
/// or out of an input (out · ...).
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

/// PyTorch's for Linear and Conv2d weights: uniform within 1/√fan_in.
Initializer default_weight();
/// Likewise for the bias beside weights of `weight_shape`.
Initializer default_bias(const Shape& weight_shape);

}  // namespace tern
