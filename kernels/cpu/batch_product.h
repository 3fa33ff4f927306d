#pragma once

#include <cstdint>

namespace tern::cpu {

/// A layer's product of a batch of few rows with a large matrix of weights w [out, in].
struct BatchProduct {
  int64_t batch, in, out;
};

/// Whether `batch_forward` beats a library's product, which copies the weights before it multiplies: many weights, few
/// rows to share that copy.
bool suits_batch_product(const BatchProduct& shape);

/// y [batch, out] = x [batch, in] · wᵀ; all dense and row-major. The weights are read once, where they lie.
void batch_forward(const BatchProduct& shape, const float* x, const float* w, float* y);

}  // namespace tern::cpu
