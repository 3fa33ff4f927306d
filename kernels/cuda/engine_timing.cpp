#include "tern/kernels/cuda/engine_timing.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tern/core/error.h"
#include "tern/kernels/cuda/moment.h"

namespace tern::cuda {
namespace {

/// The first `most` candidates that run. Their code is loaded then.
std::vector<size_t> runnable(size_t count, size_t most, cudaStream_t stream, const std::function<void(size_t)>& run) {
  std::vector<size_t> found;
  std::exception_ptr failure;
  for (size_t i = 0; i < count && found.size() < most; ++i) {
    if (auto failed = failure_of(stream, [&] { run(i); }))
      failure = std::move(failed);
    else
      found.push_back(i);
  }
  if (found.empty()) std::rethrow_exception(failure);
  return found;
}

}  // namespace

std::exception_ptr failure_of(cudaStream_t stream, const std::function<void()>& run) {
  std::exception_ptr failure;
  try {
    run();
  } catch (const Error&) {
    failure = std::current_exception();
    cudaGetLastError();  // else the next engine's library takes it for its own
  }
  check_cuda(cudaStreamSynchronize(stream), "engine");
  return failure;
}

size_t first_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run) {
  return runnable(count, 1, stream, run).front();
}

size_t fastest_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run) {
  const std::vector<size_t> candidates = runnable(count, count, stream, run);
  if (candidates.size() == 1) return candidates.front();
  constexpr int kRounds = 3, kRuns = 4;  // one run of a few microseconds is below what events tell apart
  std::vector<float> shortest(candidates.size(), std::numeric_limits<float>::infinity());
  Moment begin, end;
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < candidates.size(); ++i) {
      begin.record(stream);
      for (int repetition = 0; repetition < kRuns; ++repetition) run(candidates[i]);
      end.record(stream);
      shortest[i] = std::min(shortest[i], end.milliseconds_since(begin));
    }
  return candidates[static_cast<size_t>(std::ranges::min_element(shortest) - shortest.begin())];
}

}  // namespace tern::cuda
