#include "tern/kernels/cuda/engine_timing.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tern/kernels/cuda/moment.h"

namespace tern::cuda {

size_t fastest_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run) {
  if (count == 1) return 0;
  constexpr int kRounds = 3, kRuns = 4;  // one run of a few microseconds is below what events tell apart
  std::vector<float> shortest(count, std::numeric_limits<float>::infinity());
  Moment begin, end;
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < count; ++i) {
      if (round == 0) run(i);  // loads its code
      begin.record(stream);
      for (int repetition = 0; repetition < kRuns; ++repetition) run(i);
      end.record(stream);
      shortest[i] = std::min(shortest[i], end.milliseconds_since(begin));
    }
  return static_cast<size_t>(std::ranges::min_element(shortest) - shortest.begin());
}

}  // namespace tern::cuda
