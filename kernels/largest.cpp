#include "tern/kernels/largest.h"

#include <algorithm>
#include <functional>

namespace tern::kernels {
namespace {

/// The k-th largest of `values`, which are reordered.
uint32_t kth_largest(std::vector<uint32_t>& values, int64_t k) {
  std::ranges::nth_element(values, values.begin() + (k - 1), std::greater());
  return values[static_cast<size_t>(k - 1)];
}

/// Keeps those k of `places`, which rise, whose elements have the largest magnitudes; of equal ones, the first.
void keep_largest(std::vector<uint32_t>& places, std::span<const uint32_t> magnitudes, int64_t k) {
  std::vector<uint32_t> found;
  for (const uint32_t i : places) found.push_back(magnitudes[i]);
  const uint32_t smallest = kth_largest(found, k);
  int64_t equals = k - std::count_if(found.begin(), found.begin() + k, [=](uint32_t m) { return m > smallest; });
  std::erase_if(places,
                [&](uint32_t i) { return magnitudes[i] < smallest || (magnitudes[i] == smallest && equals-- <= 0); });
}

}  // namespace

// Each of k runs has an element that is not below the k-th largest of the runs' maxima. So no element below that one is
// among the k largest, and most runs have none.
std::vector<uint32_t> largest_places(std::span<const uint32_t> magnitudes, int64_t k) {
  constexpr size_t kRun = 16;
  const size_t n = magnitudes.size(), whole = n / kRun, runs = (n + kRun - 1) / kRun;
  std::vector<uint32_t> maxima(runs);
  for (size_t r = 0; r < whole; ++r) {
    uint32_t most = 0;
    for (size_t i = 0; i < kRun; ++i) most = std::max(most, magnitudes[kRun * r + i]);
    maxima[r] = most;
  }
  for (size_t i = kRun * whole; i < n; ++i) maxima[whole] = std::max(maxima[whole], magnitudes[i]);
  uint32_t least = 0;
  if (static_cast<size_t>(k) <= runs) {
    std::vector<uint32_t> order = maxima;
    least = kth_largest(order, k);
  }
  std::vector<uint32_t> places;
  for (size_t r = 0; r < runs; ++r) {
    if (maxima[r] < least) continue;
    for (size_t i = kRun * r; i < std::min(kRun * (r + 1), n); ++i)
      if (magnitudes[i] >= least) places.push_back(static_cast<uint32_t>(i));
  }
  keep_largest(places, magnitudes, k);
  return places;
}

}  // namespace tern::kernels
