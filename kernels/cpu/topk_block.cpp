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

constexpr int64_t kBlocks = 4;  // the least number of blocks that a thread encodes

/// Writes fields of bits without gaps, the highest bit of each first.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* to) : to_(to) {}

  /// Writes the lowest `count` bits of `value`, which has no other bits. `count` is at most 24.
  void write(uint32_t value, int count) {
    waiting_ = waiting_ << count | value;
    for (count_ += count; count_ >= 8; count_ -= 8) *to_++ = static_cast<uint8_t>(waiting_ >> (count_ - 8));
  }
  /// Fills the last byte with zeros. Returns the byte behind it.
  uint8_t* finish() {
    if (count_ > 0) write(0, 8 - count_);
    return to_;
  }

 private:
  uint8_t* to_;
  uint64_t waiting_ = 0;  // its lowest `count_` bits, fewer than 8
  int count_ = 0;
};

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
      for (const uint32_t place : largest_places(magnitudes, layout.kept(block))) {
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
  choose(layout, g.data<float>(), places.data(), values.data());

  auto* next = codes.data<uint8_t>();
  std::vector<uint8_t> value_codes(layout.coded_values ? kept : 0);
  bool is_finite = std::ranges::all_of(values, [](float value) { return magnitude_bits(value) < kInfinityBits; });
  if (layout.coded_values) {
    const ValueTable table = make_value_table(values, value_codes.data());
    is_finite &= table.is_finite();
    std::memcpy(next, &table, sizeof table);
    next += sizeof table;
  }
  if (!is_finite) *broken.data<uint8_t>() = 1;
  FieldWriter fields(next);
  for (int64_t block = 0; block < layout.grid.count(); ++block) {
    const int bits = layout.place_bits(block);
    const uint32_t* const first = places.data() + layout.kept_before(block);
    for (int64_t i = 0; i < layout.kept(block); ++i) fields.write(first[i], bits);
  }
  next = fields.finish();
  if (!layout.coded_values) {
    std::memcpy(next, values.data(), sizeof(float) * kept);
    return;
  }
  FieldWriter codes_of_values(next);
  for (const uint8_t code : value_codes) codes_of_values.write(code, 2);
  codes_of_values.finish();
}

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, Tensor& sum) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  const uint8_t* const codes = messages.data<uint8_t>() + codes_at;
  for (int64_t message = 0; message < messages.size(0); ++message)
    check_topk_block_code(layout, codes + message * messages.size(1));
  parallel_for(0, layout.grid.count(), 8 * kBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t message = 0; message < messages.size(0); ++message)
      for (int64_t block = begin; block < end; ++block)
        topk_block_add(layout, codes + message * messages.size(1), block, sum.data<float>());
  });
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::cpu, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::cpu, topk_block_decode_add);
}

}  // namespace tern::cpu
