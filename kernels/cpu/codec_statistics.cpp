#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/codec.h"
#include "tern/kernels/cpu/codec/chunks.h"

namespace tern::cpu {

using namespace tern::kernels;

void gradient_statistics(std::span<const MeasuredGradient> message, int64_t bucket) {
  check_statistics(message, bucket);
  for (const auto& [g, statistics] : message) {
    const int64_t n = g.numel(), width = codec::bucket_width(n, bucket);
    const int64_t runs_per_bucket = (width + kStatisticsRun - 1) / kStatisticsRun;
    const int64_t buckets = bucket_count(n, bucket);
    std::vector<CodecSums> runs(static_cast<size_t>(buckets * runs_per_bucket));
    const float* x = g.data<float>();
    const int64_t grain = std::max<int64_t>(1, 16 * kStatisticsRun / std::min(width, kStatisticsRun));
    parallel_for(0, buckets * runs_per_bucket, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t b = r / runs_per_bucket, first = b * width + r % runs_per_bucket * kStatisticsRun;
        const int64_t last = std::min({n, first + kStatisticsRun, (b + 1) * width});
        if (first < last) runs[static_cast<size_t>(r)] = codec::run_sums(x + first, last - first);
      }
    });
    auto* row = statistics.data<double>();
    for (int64_t b = 0; b < buckets; ++b, row += 3) {
      const int64_t count = std::min(n - b * width, width);
      const CodecSums sums =
          codec_tree(runs.data() + b * runs_per_bucket, (count + kStatisticsRun - 1) / kStatisticsRun);
      row[0] = sums.largest;
      row[1] = sums.sum;
      row[2] = sums.squares;
    }
  }
}

}  // namespace tern::cpu
