#include "tern/kernels/randk.h"

#include <cmath>
#include <cstring>
#include <set>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// The elements that the seed draws from n, in their order.
std::set<uint32_t> drawn_elements(uint64_t seed, int64_t n, int64_t kept) {
  const RandomStream stream = randk_stream(seed);
  std::set<uint32_t> drawn;
  for (int64_t step = n - kept; step < n; ++step) {
    const auto last = static_cast<uint32_t>(step);
    if (!drawn.insert(randk_draw(stream, last)).second) drawn.insert(last);
  }
  return drawn;
}

void randk_encode(std::span<const RandKGradient> message) {
  check_randk_encode(message);
  for (const auto& [g, key, kept, codes] : message) {
    if (kept == 0) continue;
    const uint64_t seed = drawn_seed(key);
    auto* next = codes.data<uint8_t>();
    std::memcpy(next, &seed, sizeof seed);
    next += sizeof seed;
    for (const uint32_t i : drawn_elements(seed, g.numel(), kept)) {
      const auto value = static_cast<float>(g.data<float>()[i] * randk_scale(g.numel(), kept));
      std::memcpy(next, &value, sizeof value);
      next += sizeof value;
    }
  }
}

void randk_decode_add(std::span<const RandKSum> message, const Tensor& messages) {
  check_randk_decode(message, messages);
  for (const auto& [sum, kept, codes_at] : message)
    for (int64_t row = 0; kept > 0 && row < messages.size(0); ++row) {
      const uint8_t* next = messages.data<uint8_t>() + row * messages.size(1) + codes_at;
      uint64_t seed;
      std::memcpy(&seed, next, sizeof seed);
      next += sizeof seed;
      for (const uint32_t i : drawn_elements(seed, sum.numel(), kept)) {
        float value;
        std::memcpy(&value, next, sizeof value);
        next += sizeof value;
        check(std::isfinite(value), "randk_decode_add: a message holds a value that is not finite");
        sum.data<float>()[i] += value;
      }
    }
}

}  // namespace

void provide_randk() {
  kernels::randk_encode.provide(Target::reference, randk_encode);
  kernels::randk_decode_add.provide(Target::reference, randk_decode_add);
}

}  // namespace tern::reference
