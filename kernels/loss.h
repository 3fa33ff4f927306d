#pragma once

#include "tern/kernels/kernel.h"

// Softmax over the last dimension of a row-major tensor, and losses.

namespace tern::kernels {

inline constinit Kernel<void(const Tensor& x, Tensor& y)> softmax{"softmax"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> softmax_backward{"softmax_backward"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> log_softmax{"log_softmax"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> log_softmax_backward{
    "log_softmax_backward"};

/// Throws an error that names row, label and classes unless the label is in [0, classes).
void check_label(int64_t label, int64_t row, int64_t classes);

/// Mean over the rows of x [N, C] of the cross-entropy between softmax(x) and (1 - smoothing)·one_hot(label) +
/// smoothing / C. labels: i64 [N] in [0, C). If a label is outside, the CPU throws and CUDA gives a NaN loss. `loss`
/// has rank 0 and `parameter_dtype` of x. `probabilities` [N, C], also of `parameter_dtype`, is saved for the backward.
inline constinit Kernel<void(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss,
                             Tensor& probabilities)>
    cross_entropy{"cross_entropy"};
/// dx = dloss/N · (probabilities - target), in the dtype of dx. dloss has rank 0.
inline constinit Kernel<void(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                             Tensor& dx)>
    cross_entropy_backward{"cross_entropy_backward"};

/// loss = mean (x - target)², rank 0, `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> mse{"mse"};
/// dx = dloss · 2/numel · (x - target)
inline constinit Kernel<void(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx)> mse_backward{
    "mse_backward"};

/// loss = mean of max(x, 0) - x·t + log(1 + exp(-|x|)) over all elements, rank 0, `parameter_dtype` of x: the
/// cross-entropy between t and sigmoid(x). target: the shape and format of x, in `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> binary_cross_entropy{
    "binary_cross_entropy"};
/// dx = dloss/numel · (sigmoid(x) - target)
inline constinit Kernel<void(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx)>
    binary_cross_entropy_backward{"binary_cross_entropy_backward"};

/// Throws an error that names both tensors unless `target` fits x, as `binary_cross_entropy` says.
void check_binary_target(const Tensor& x, const Tensor& target);

}  // namespace tern::kernels
