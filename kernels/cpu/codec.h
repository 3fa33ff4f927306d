#pragma once

#include "tern/kernels/codec.h"

namespace tern::cpu {

void gradient_statistics(const Tensor& g, int64_t bucket, Tensor& statistics);
void quantize(const Tensor& g, const Tensor& units, int64_t bucket, int64_t levels, const RandomKey& key,
              Tensor& codes);
void norm_quantize(const Tensor& g, kernels::BucketNorm norm, int64_t bucket, int64_t levels, const RandomKey& key,
                   Tensor& units, Tensor& codes);
void dequantize_add(const Tensor& codes, const Tensor& units, int64_t bucket, int64_t levels, Tensor& sum);

}  // namespace tern::cpu
