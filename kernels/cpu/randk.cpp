#include "tern/kernels/randk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

/// Calls body(element) for each element that the seed draws from n, in their order.
template <class Body>
void for_each_drawn(uint64_t seed, int64_t n, int64_t kept, Body body) {
  const RandomStream stream = randk_stream(seed);
  std::vector<uint64_t> drawn(static_cast<size_t>((n + 63) / 64));
  const auto mark = [&](uint32_t element) {
    const uint64_t before = drawn[element / 64], bit = uint64_t{1} << (element % 64);
    drawn[element / 64] |= bit;
    return (before & bit) == 0;
  };
  for (int64_t last = n - kept; last < n; ++last)
    if (!mark(randk_draw(stream, static_cast<uint32_t>(last)))) mark(static_cast<uint32_t>(last));
  for (size_t i = 0; i < drawn.size(); ++i)
    for (uint64_t word = drawn[i]; word != 0; word &= word - 1)
      body(64 * i + static_cast<size_t>(std::countr_zero(word)));
}

void encode(const RandKGradient& of) {
  if (of.kept == 0) return;
  const int64_t n = of.g.numel();
  const uint64_t seed = drawn_seed(of.key);
  const double scale = randk_scale(n, of.kept);
  const auto g = of.g.span<float>();
  std::vector<float> values;
  for_each_drawn(seed, n, of.kept, [&](size_t i) { values.push_back(static_cast<float>(g[i] * scale)); });
  std::memcpy(of.codes.raw_data(), &seed, sizeof seed);
  std::memcpy(of.codes.data<uint8_t>() + sizeof seed, values.data(), 4 * values.size());
}

/// sum += the values of a code.
void add_code(const uint8_t* code, int64_t kept, std::span<float> sum) {
  if (kept == 0) return;
  uint64_t seed;
  std::memcpy(&seed, code, sizeof seed);
  std::vector<float> values(static_cast<size_t>(kept));
  std::memcpy(values.data(), code + sizeof seed, 4 * values.size());
  check(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }),
        "randk_decode_add: a message holds a value that is not finite");
  auto value = values.begin();
  for_each_drawn(seed, std::ssize(sum), kept, [&](size_t i) { sum[i] += *value++; });
}

// A thread takes whole tensors.

void randk_encode(std::span<const RandKGradient> message) {
  check_randk_encode(message);
  parallel_for(0, std::ssize(message), 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) encode(message[static_cast<size_t>(i)]);
  });
}

void randk_decode_add(std::span<const RandKSum> message, const Tensor& messages) {
  check_randk_decode(message, messages);
  parallel_for(0, std::ssize(message), 1, [=, &messages](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t row = 0; row < messages.size(0); ++row) {
        const auto& [sum, kept, codes_at] = message[static_cast<size_t>(i)];
        add_code(messages.data<uint8_t>() + row * messages.size(1) + codes_at, kept, sum.span<float>());
      }
  });
}

}  // namespace

void provide_randk() {
  kernels::randk_encode.provide(Target::cpu, randk_encode);
  kernels::randk_decode_add.provide(Target::cpu, randk_decode_add);
}

}  // namespace tern::cpu
