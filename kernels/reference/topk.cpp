#include "tern/kernels/topk.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "tern/kernels/largest.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

void topk_encode(std::span<const TopKGradient> message) {
  check_topk_encode(message);
  for (const auto& [gradient, kept, codes] : message) {
    const auto g = gradient.span<float>();
    std::vector<uint32_t> places(g.size());
    std::iota(places.begin(), places.end(), 0u);
    std::ranges::stable_sort(places, std::greater(), [&](uint32_t place) { return magnitude_bits(g[place]); });
    places.resize(static_cast<size_t>(kept));
    std::ranges::sort(places);
    auto* next = codes.data<uint8_t>();
    for (const uint32_t place : places) {
      std::memcpy(next, &place, 4);
      std::memcpy(next + 4 * kept, &g[place], 4);
      next += 4;
    }
  }
}

void topk_decode_add(std::span<const TopKSum> message, const Tensor& messages, float factor) {
  check_topk_decode(message, messages);
  for (const auto& [sum, kept, codes_at] : message)
    for (int64_t row = 0; row < messages.size(0); ++row)
      topk_add(messages.data<uint8_t>() + row * messages.size(1) + codes_at, kept, factor, sum.span<float>());
}

}  // namespace

void provide_topk() {
  kernels::topk_encode.provide(Target::reference, topk_encode);
  kernels::topk_decode_add.provide(Target::reference, topk_decode_add);
}

}  // namespace tern::reference
