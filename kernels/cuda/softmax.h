#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

void softmax(const Tensor& x, Tensor& y);
void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx);
void log_softmax(const Tensor& x, Tensor& y);
void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx);

/// As everywhere, but a label outside [0, C) makes the loss NaN: nobody waits here to be told of it.
void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities);
void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx);
void mse(const Tensor& x, const Tensor& target, Tensor& loss);
void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx);

}  // namespace tern::cuda
