#pragma once

#include "tern/dist/codec/codec.h"

namespace tern {

/// max |g|, Σg and Σg² of each bucket (kernels::gradient_statistics); an error names the tensor that has a NaN or
/// infinite element.
Tensor finite_statistics(const GradientTag& tag, const Tensor& gradient, int64_t bucket);
/// The same of all gradients of a message, one after the other: f64 [buckets, 3], on the CPU.
Tensor finite_statistics(const FusedGradients& message, int64_t bucket);
/// The same check alone, on numbers that are finite where the gradient is.
void check_finite(const GradientTag& tag, std::span<const float> numbers);
/// Scalers that a message holds: an error unless all are finite and not negative.
void check_scalers(std::span<const float> scalers);

}  // namespace tern
