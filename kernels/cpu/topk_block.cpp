#include "tern/kernels/topk_block.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

constexpr int64_t kBlocks = 4, kBytes = 1 << 12;  // the least work of a thread

/// Writes the places and values of the kept elements of all blocks.
void choose(const TopKBlockLayout& layout, const float* g, uint32_t* places, float* values) {
  const BlockGrid& grid = layout.grid;
  parallel_for(0, grid.count(), kBlocks, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> magnitudes;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t n = grid.elements(block), width = grid.width(block);
      magnitudes.resize(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; i += width) {
        const float* const row = g + grid.at(block, i);
        std::transform(row, row + width, magnitudes.begin() + i, magnitude_bits);
      }
      int64_t next = layout.kept_before(block);
      for (const uint32_t place : largest(magnitudes, layout.kept(block))) {
        places[next] = place;
        values[next++] = g[grid.at(block, place)];
      }
    }
  });
}

void topk_block_encode(const Tensor& g, const TopKBlockOptions& options, Tensor& codes, Tensor& broken) {
  const TopKBlockLayout layout(g.shape(), options);
  check_topk_block_encode(g, layout, codes, broken);
  if (g.numel() == 0) return;
  const auto kept = static_cast<size_t>(layout.kept());
  std::vector<uint32_t> places(kept);
  std::vector<float> values(kept);
  std::vector<uint8_t> value_codes(layout.coded_values ? kept : 0);
  choose(layout, g.data<float>(), places.data(), values.data());

  auto* const bytes = codes.data<uint8_t>();
  bool is_finite = std::ranges::all_of(values, [](float value) { return magnitude_bits(value) < kInfinityBits; });
  if (layout.coded_values) {
    const ValueTable table = make_value_table(values, value_codes);
    is_finite &= table.is_finite();
    std::memcpy(bytes, &table, sizeof table);
  }
  if (!is_finite) *broken.data<uint8_t>() = 1;
  parallel_for(layout.places_at(), layout.bytes(), kBytes, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at)
      bytes[at] = topk_block_byte(layout, at, places.data(), values.data(), value_codes.data());
  });
}

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, Tensor& sum) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  const uint8_t* const codes = messages.data<uint8_t>() + codes_at;
  parallel_for(0, layout.grid.count(), 8 * kBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t message = 0; message < messages.size(0); ++message)
      for (int64_t block = begin; block < end; ++block)
        add_block(layout, codes + message * messages.size(1), block, sum.data<float>());
  });
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::cpu, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::cpu, topk_block_decode_add);
}

}  // namespace tern::cpu
