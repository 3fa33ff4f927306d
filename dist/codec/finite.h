#pragma once

#include "tern/dist/codec/codec.h"

namespace tern {

/// max |g|, Σg and Σg² of each bucket (kernels::gradient_statistics): f64 [buckets, 3], on the CPU. Throws InputError
/// that names the tensor if an element is NaN or infinite.
Tensor finite_statistics(const GradientTag& tag, const Tensor& gradient, int64_t bucket);
/// The statistics of all gradients of a message, one gradient after the other: f64 [buckets, 3], on the CPU.
Tensor finite_statistics(const FusedGradients& message, int64_t bucket);
/// Throws InputError that names the tensor unless all `numbers` are finite. The numbers are computed from the gradient,
/// and are finite if the gradient is, unless they leave the range of f32.
void check_finite(const GradientTag& tag, std::span<const float> numbers);
/// Throws unless all scalers of a message are finite and not negative.
void check_scalers(std::span<const float> scalers);

}  // namespace tern
