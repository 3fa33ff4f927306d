#include "tern/kernels/topk_block.h"

#include <algorithm>
#include <functional>

#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::kernels {
namespace {

void check_gradient(const char* operation, const Tensor& g) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
}

/// The k-th largest of `values`, which are reordered.
uint32_t kth_largest(std::vector<uint32_t>& values, int64_t k) {
  std::ranges::nth_element(values, values.begin() + (k - 1), std::greater());
  return values[static_cast<size_t>(k - 1)];
}

}  // namespace

// Each of k runs has an element that is not below the k-th largest of the runs' maxima. So no element below that one is
// among the k largest, and most runs have none.
std::vector<uint32_t> largest(std::span<const uint32_t> magnitudes, int64_t k) {
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
  std::vector<uint32_t> places, found;
  for (size_t r = 0; r < runs; ++r) {
    if (maxima[r] < least) continue;
    for (size_t i = kRun * r; i < std::min(kRun * (r + 1), n); ++i)
      if (magnitudes[i] >= least) {
        places.push_back(static_cast<uint32_t>(i));
        found.push_back(magnitudes[i]);
      }
  }
  const uint32_t smallest = kth_largest(found, k);
  int64_t equals = k - std::ranges::count_if(found, [=](uint32_t m) { return m > smallest; });
  std::erase_if(places,
                [&](uint32_t i) { return magnitudes[i] < smallest || (magnitudes[i] == smallest && equals-- <= 0); });
  return places;
}

void check_topk_block_encode(const Tensor& g, const TopKBlockLayout& layout, const Tensor& codes,
                             const Tensor& broken) {
  const char* const operation = "topk_block_encode";
  check_gradient(operation, g);
  const Shape expected = {layout.bytes()};
  check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(), operation,
        ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ", expected, " on ",
        g.device());
  check(broken.dtype() == DType::u8 && broken.numel() == 1 && broken.device() == g.device(), operation, ": broken is ",
        broken.dtype(), " ", broken.shape(), " on ", broken.device(), ", expected u8 [1] on ", g.device());
}

void check_topk_block_decode(const Tensor& messages, int64_t codes_at, const TopKBlockLayout& layout,
                             const Tensor& total) {
  const char* const operation = "topk_block_decode_add";
  check_gradient(operation, total);
  check(messages.dtype() == DType::u8 && messages.rank() == 2 && messages.device() == total.device() && codes_at >= 0 &&
            messages.size(1) >= codes_at + layout.bytes(),
        operation, ": messages are ", messages.dtype(), " ", messages.shape(), " on ", messages.device(),
        ", expected u8 [messages, bytes] on ", total.device(), " with ", layout.bytes(), " bytes from ", codes_at, " on");
}

}  // namespace tern::kernels
