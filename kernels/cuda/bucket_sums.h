#pragma once

#include <span>

#include "tern/kernels/codec.h"

namespace tern::cuda {

/// One gradient's buckets and what becomes of their sums: rows of statistics, or units where `statistics` is null.
struct BucketSums {
  const float* g;
  int64_t numel, width;  ///< elements: of all, of a bucket
  double* statistics;
  float* units;
  double* partials = nullptr;  ///< scratch
};

/// Sums every bucket in the order of codec_arithmetic.h; `norm` and `levels` are those of units.
void sum_buckets(const char* operation, Device device, std::span<BucketSums> gradients, kernels::BucketNorm norm,
                 int64_t levels);

}  // namespace tern::cuda
