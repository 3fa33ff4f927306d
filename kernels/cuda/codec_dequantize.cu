#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/item_table.h"
#include "tern/kernels/cuda/tile.h"

namespace tern::cuda {
namespace {

using kernels::DecodedGradient;

/// Codes and units of the first message; those of the next lie a fixed number of bytes further.
struct Decoded {
  float* sum;
  const uint8_t *codes, *units;
  int64_t numel;
  BucketWidth bucket;
};

struct Messages {
  int64_t count, codes_step, units_step;
};

template <class Slots>
__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    dequantize_kernel(Messages messages, int bits, const __grid_constant__ ItemTable<Decoded> table) {
  const auto place = table.place();
  const Decoded& of = place.entry;
  const int64_t first = (place.block * kTilesPerBlock + threadIdx.x / kWarp) * kTile;
  if (first >= of.numel) return;
  float sums[kTileGroups] = {};
  for_each_group(first, of.numel, [&](int j, int64_t e) { sums[j] = of.sum[e]; });
  for (int64_t message = 0; message < messages.count; ++message) {
    const uint8_t* const codes = of.codes + message * messages.codes_step;
    const uint8_t* const units = of.units + message * messages.units_step;
    float values[kTileGroups];
    spread(
        of.bucket, first, of.numel,
        [&](int64_t bucket) { return std::bit_cast<float>(load_bytes(units + 4 * bucket, 4)); }, values);
#pragma unroll
    for (int word = 0; word < Slots::kWords; ++word) {
      const auto plane = Slots::plane(of.numel, bits, first / kWarp, word);
      const uint32_t own = transpose_bits(load_bytes(codes + plane.at, plane.bytes()));
#pragma unroll
      for (int k = 0; k < Slots::kGroups; ++k) {
        const int j = word * Slots::kGroups + k;
        const uint32_t code = own >> (k * Slots::kBits) & Slots::kCode;
        const float magnitude = static_cast<float>(code >> 1) * values[j];
        sums[j] += (code & 1u) != 0 ? -magnitude : magnitude;
      }
    }
  }
  for_each_group(first, of.numel, [&](int j, int64_t e) { of.sum[e] = sums[j]; });
}

}  // namespace

void dequantize_add(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                    int64_t bucket, int64_t levels) {
  kernels::check_dequantize(message, messages, units, bucket, levels);
  const auto* const codes = messages.data<uint8_t>();
  const auto* const first_units =
      units.defined() ? reinterpret_cast<const uint8_t*>(units.data<float>()) : messages.data<uint8_t>();
  std::vector<Decoded> entries;
  for (const auto& [sum, first_unit, codes_at] : message)
    if (sum.numel() != 0)
      entries.push_back({sum.data<float>(), codes + codes_at, first_units + 4 * first_unit, sum.numel(),
                         BucketWidth(bucket == 0 ? sum.numel() : bucket)});
  const Messages rows = {messages.size(0), messages.size(1), units.defined() ? 0 : messages.size(1)};
  const int bits = kernels::code_bits(levels);
  visit_slots(bits, [&]<class Slot>(Slot) {
    for_each_table(
        std::span<const Decoded>(entries), [](const Decoded& of) { return tile_blocks(of.numel); },
        [&](const auto& table) {
          launch("dequantize_add", messages.device(), table.grid(), dequantize_kernel<Slot>, rows, bits, table);
        });
  });
}

}  // namespace tern::cuda
