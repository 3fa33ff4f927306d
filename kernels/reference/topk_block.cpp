#include "tern/kernels/topk_block.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "tern/kernels/provide.h"
#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// The places of the kept elements of a block.
std::vector<uint32_t> kept_places(const float* g, const TopKBlockLayout& layout, int64_t block) {
  std::vector<uint32_t> places(static_cast<size_t>(layout.grid.elements(block)));
  std::iota(places.begin(), places.end(), 0u);
  std::ranges::stable_sort(places, std::greater(),
                           [&](uint32_t place) { return magnitude_bits(g[layout.grid.at(block, place)]); });
  places.resize(static_cast<size_t>(layout.kept(block)));
  std::ranges::sort(places);
  return places;
}

/// Appends the lowest `count` bits of `value`, the highest first.
void append_bits(std::vector<bool>& bits, uint32_t value, int count) {
  while (count-- > 0) bits.push_back((value >> count & 1u) != 0);
}
/// Writes the bits, the highest bit of each byte first, and zeros after the last. Returns the byte behind them.
uint8_t* write_bits(const std::vector<bool>& bits, uint8_t* to) {
  for (size_t i = 0; i < bits.size(); ++i) {
    if (i % 8 == 0) to[i / 8] = 0;
    to[i / 8] = static_cast<uint8_t>(to[i / 8] | (bits[i] ? 0x80u >> (i % 8) : 0u));
  }
  return to + (bits.size() + 7) / 8;
}

void topk_block_encode(const Tensor& g, const TopKBlockOptions& options, Tensor& codes, Tensor& broken) {
  const TopKBlockLayout layout(g.shape(), options);
  check_topk_block_encode(g, layout, codes, broken);
  if (g.numel() == 0) return;
  std::vector<bool> place_bits;
  std::vector<float> values;
  for (int64_t block = 0; block < layout.grid.count(); ++block)
    for (const uint32_t place : kept_places(g.data<float>(), layout, block)) {
      append_bits(place_bits, place, layout.place_bits(block));
      values.push_back(g.data<float>()[layout.grid.at(block, place)]);
    }
  const auto is_broken = [](float value) { return magnitude_bits(value) >= kInfinityBits; };
  if (std::ranges::any_of(values, is_broken)) *broken.data<float>() = 1;
  auto* next = codes.data<uint8_t>();
  std::vector<uint8_t> value_codes(values.size());
  if (layout.coded_values) {
    const ValueTable table = make_value_table(values, value_codes.data());
    if (!table.is_finite()) *broken.data<float>() = 1;
    std::memcpy(next, &table, sizeof table);
    next += sizeof table;
  }
  next = write_bits(place_bits, next);
  if (!layout.coded_values) {
    std::memcpy(next, values.data(), sizeof(float) * values.size());
    return;
  }
  std::vector<bool> value_bits;
  for (const uint8_t code : value_codes) append_bits(value_bits, code, 2);
  write_bits(value_bits, next);
}

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, float factor,
                           Tensor& sum) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  for (int64_t message = 0; message < messages.size(0); ++message) {
    const uint8_t* const code = messages.data<uint8_t>() + message * messages.size(1) + codes_at;
    check_topk_block_code(layout, code);
    for (int64_t block = 0; block < layout.grid.count(); ++block)
      topk_block_add(layout, code, block, factor, sum.data<float>());
  }
}

void topk_block_mean(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, MeanOver over,
                     Tensor& mean) {
  const TopKBlockLayout layout(mean.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, mean);
  const auto y = mean.span<float>();
  std::ranges::fill(y, 0.0f);
  std::vector<float> senders;
  for (int64_t block = 0; block < layout.grid.count(); ++block) {
    const int64_t elements = layout.grid.elements(block);
    senders.assign(static_cast<size_t>(elements), 0);
    for (int64_t message = 0; message < messages.size(0); ++message) {
      const uint8_t* const code = messages.data<uint8_t>() + message * messages.size(1) + codes_at;
      check_topk_block_code(layout, code);
      topk_block_add(layout, code, block, 1, y.data(), senders.data());
    }
    for (int64_t i = 0; i < elements; ++i) {
      float& element = y[static_cast<size_t>(layout.grid.at(block, i))];
      if (over == MeanOver::messages)
        element *= static_cast<float>(1.0 / static_cast<double>(messages.size(0)));
      else
        element /= std::max(1.0f, senders[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::reference, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::reference, topk_block_decode_add);
  kernels::topk_block_mean.provide(Target::reference, topk_block_mean);
}

}  // namespace tern::reference
