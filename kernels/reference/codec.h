#pragma once

#include "tern/kernels/codec.h"

namespace tern::reference {

void gradient_statistics(std::span<const kernels::MeasuredGradient> message, int64_t bucket);
void quantize(std::span<const kernels::CodedGradient> message, int64_t bucket, int64_t levels);
void norm_quantize(std::span<const kernels::CodedGradient> message, kernels::BucketNorm norm, int64_t bucket,
                   int64_t levels);
void dequantize_add(std::span<const kernels::DecodedGradient> message, const Tensor& messages, const Tensor& units,
                    int64_t bucket, int64_t levels);

}  // namespace tern::reference
