#pragma once

#include "tern/autograd/variable.h"

// Losses: means over the batch, of rank 0 and f32 (f64 for f64).

namespace tern {

/// The cross-entropy between softmax(logits [N, C]) and (1 - smoothing)·one_hot(label) + smoothing / C; labels i64 [N]
/// in [0, C).
Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing = 0);
/// (x - target)², over all elements; equal shapes.
Variable mse(const Variable& x, const Tensor& target);

}  // namespace tern
