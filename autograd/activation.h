#pragma once

#include "tern/autograd/variable.h"

// Elementwise functions of one value; outputs have its shape, dtype and format.

namespace tern {

/// max(x, 0)
Variable relu(const Variable& x);
/// x where x > 0, else slope·x
Variable leaky_relu(const Variable& x, double slope = 0.01);
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);

/// 0 if y <= 0, else dy, also if y is NaN: the gradient through a relu that gave y, in y's format; written into dy
/// where nobody else holds that.
Tensor relu_gradient(const Tensor& y, Tensor dy);

}  // namespace tern
