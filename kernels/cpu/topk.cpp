#include "tern/kernels/topk.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/largest.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

void encode(const TopKGradient& of) {
  if (of.kept == 0) return;
  const auto g = of.g.span<float>();
  std::vector<uint32_t> magnitudes(g.size());
  std::ranges::transform(g, magnitudes.begin(), magnitude_bits);
  const std::vector<uint32_t> places = largest_places(magnitudes, of.kept);
  std::vector<float> values;
  for (const uint32_t place : places) values.push_back(g[place]);
  std::memcpy(of.codes.raw_data(), places.data(), 4 * places.size());
  std::memcpy(of.codes.data<uint8_t>() + 4 * of.kept, values.data(), 4 * values.size());
}

// A thread takes whole tensors.

void topk_encode(std::span<const TopKGradient> message) {
  check_topk_encode(message);
  parallel_for(0, std::ssize(message), 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) encode(message[static_cast<size_t>(i)]);
  });
}

void topk_decode_add(std::span<const TopKSum> message, const Tensor& messages, float factor) {
  check_topk_decode(message, messages);
  parallel_for(0, std::ssize(message), 1, [=, &messages](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t row = 0; row < messages.size(0); ++row) {
        const auto& [sum, kept, codes_at] = message[static_cast<size_t>(i)];
        topk_add(messages.data<uint8_t>() + row * messages.size(1) + codes_at, kept, factor, sum.span<float>());
      }
  });
}

}  // namespace

void provide_topk() {
  kernels::topk_encode.provide(Target::cpu, topk_encode);
  kernels::topk_decode_add.provide(Target::cpu, topk_decode_add);
}

}  // namespace tern::cpu
