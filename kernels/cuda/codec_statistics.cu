#include <vector>

#include "tern/kernels/cuda/bucket_sums.h"
#include "tern/kernels/cuda/codec.h"

namespace tern::cuda {

void gradient_statistics(std::span<const kernels::MeasuredGradient> message, int64_t bucket) {
  kernels::check_statistics(message, bucket);
  std::vector<BucketSums> sums;
  for (const auto& [g, statistics] : message)
    if (g.numel() != 0)
      sums.push_back(
          {g.data<float>(), g.numel(), bucket == 0 ? g.numel() : bucket, statistics.data<double>(), nullptr});
  sum_buckets("gradient_statistics", kernels::placement(message).device(), sums, {}, 1);
}

}  // namespace tern::cuda
