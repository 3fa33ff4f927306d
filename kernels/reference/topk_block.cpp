#include <algorithm>
#include <numeric>

#include "tern/kernels/provide.h"
#include "tern/kernels/topk_block.h"
#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

/// The places of the kept elements of a block.
std::vector<uint32_t> largest(const float* g, const TopKBlockLayout& layout, int64_t block) {
  std::vector<uint32_t> places(static_cast<size_t>(layout.grid.elements(block)));
  std::iota(places.begin(), places.end(), 0u);
  std::ranges::stable_sort(places, std::greater(),
                           [&](uint32_t place) { return magnitude_bits(g[layout.grid.at(block, place)]); });
  places.resize(static_cast<size_t>(layout.kept(block)));
  std::ranges::sort(places);
  return places;
}

void topk_block_encode(const Tensor& g, const TopKBlockOptions& options, Tensor& codes, Tensor& broken) {
  const TopKBlockLayout layout(g.shape(), options);
  check_topk_block_encode(g, layout, codes, broken);
  std::vector<uint32_t> places;
  std::vector<float> values;
  for (int64_t block = 0; block < layout.grid.count(); ++block)
    for (const uint32_t place : largest(g.data<float>(), layout, block)) {
      places.push_back(place);
      values.push_back(g.data<float>()[layout.grid.at(block, place)]);
    }
  if (values.empty()) return;
  const auto is_broken = [](float value) { return magnitude_bits(value) >= kInfinityBits; };
  if (std::ranges::any_of(values, is_broken)) *broken.data<uint8_t>() = 1;
  std::vector<uint8_t> value_codes(values.size());
  auto* const bytes = codes.data<uint8_t>();
  if (layout.coded_values) {
    const ValueTable table = make_value_table(values, value_codes);
    if (!table.is_finite()) *broken.data<uint8_t>() = 1;
    std::memcpy(bytes, &table, sizeof table);
  }
  for (int64_t at = layout.places_at(); at < layout.bytes(); ++at)
    bytes[at] = topk_block_byte(layout, at, places.data(), values.data(), value_codes.data());
}

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, Tensor& sum) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  for (int64_t message = 0; message < messages.size(0); ++message) {
    const uint8_t* const code = messages.data<uint8_t>() + message * messages.size(1) + codes_at;
    for (int64_t block = 0; block < layout.grid.count(); ++block) add_block(layout, code, block, sum.data<float>());
  }
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::reference, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::reference, topk_block_decode_add);
}

}  // namespace tern::reference
