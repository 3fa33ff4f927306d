#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "tern/kernels/largest.h"
#include "tern/kernels/topk_block.h"

// The arithmetic of the codes of kernels/topk_block.h. Every target repeats it operation by operation.

namespace tern::kernels {

/// The code of a value, from the mean v̄ and the standard deviation σ of all values: clamp(round((v - v̄) / (6σ/4)) + 2,
/// 0, 3), with halves rounded to the even number. It is 2 if σ is 0.
constexpr uint8_t value_code(float v, double mean, double deviation) {
  const double place = deviation > 0 ? (v - mean) / (6 * deviation / kValueCodes) : 0;
  return static_cast<uint8_t>((place > -1.5 ? 1 : 0) + (place >= -0.5 ? 1 : 0) + (place > 0.5 ? 1 : 0));
}
/// σ², over n - 1.
constexpr double value_variance(double squares, int64_t n) { return n < 2 ? 0 : squares / static_cast<double>(n - 1); }

/// The table of a tensor's values (SparseLoCo: one-covenant/templar, compress.py).
struct ValueTable {
  float mean = 0;
  std::array<float, kValueCodes> offsets = {};

  constexpr float value(uint32_t code) const { return mean + offsets[code]; }
  constexpr bool is_finite() const {
    bool finite = true;
    for (uint32_t code = 0; code < kValueCodes; ++code) finite &= magnitude_bits(value(code)) < kInfinityBits;
    return finite;
  }
};
static_assert(sizeof(ValueTable) == kValueTableBytes);
/// The offset of a code: the mean of v - v̄ over the values with it.
constexpr float value_offset(double total, int64_t count) {
  return count == 0 ? 0 : static_cast<float>(total / static_cast<double>(count));
}

/// Sums over the values have this many interleaved parts: value i is in part i % kTableLanes. Each 32 parts are added
/// in halves. Then the 8 sums are added in halves.
inline constexpr int kTableLanes = 256;
using TableLanes = std::array<double, kTableLanes>;
inline double fold_lanes(TableLanes lanes) {
  constexpr size_t kGroup = 32;
  for (size_t first = 0; first < kTableLanes; first += kGroup)
    for (size_t half = kGroup / 2; half > 0; half /= 2)
      for (size_t i = first; i < first + half; ++i) lanes[i] += lanes[i + half];
  for (size_t half = kTableLanes / 2; half >= kGroup; half /= 2)
    for (size_t i = 0; i < half; i += kGroup) lanes[i] += lanes[i + half];
  return lanes[0];
}
template <class Value>
double table_sum(int64_t count, Value value) {
  TableLanes lanes = {};
  int64_t i = 0;
  for (; i + kTableLanes <= count; i += kTableLanes)
    for (int64_t lane = 0; lane < kTableLanes; ++lane) lanes[static_cast<size_t>(lane)] += value(i + lane);
  for (int64_t lane = 0; i + lane < count; ++lane) lanes[static_cast<size_t>(lane)] += value(i + lane);
  return fold_lanes(lanes);
}

/// Makes the table of the values on the CPU, and writes their codes. If there are at most four values, each has a code
/// of its own, so that none is lost.
inline ValueTable make_value_table(std::span<const float> values, uint8_t* codes) {
  const auto n = static_cast<int64_t>(values.size());
  const float* const v = values.data();
  const double mean = table_sum(n, [=](int64_t i) { return double{v[i]}; }) / static_cast<double>(n);
  const double squares = table_sum(n, [=](int64_t i) { return (v[i] - mean) * (v[i] - mean); });
  const double deviation = std::sqrt(value_variance(squares, n));
  TableLanes lanes[kValueCodes] = {};
  int64_t counts[kValueCodes] = {};
  for (int64_t i = 0; i < n; ++i) {
    codes[i] = n <= kValueCodes ? static_cast<uint8_t>(i) : value_code(v[i], mean, deviation);
    lanes[codes[i]][static_cast<size_t>(i % kTableLanes)] += v[i] - mean;
    ++counts[codes[i]];
  }
  ValueTable table{.mean = static_cast<float>(mean)};
  for (size_t code = 0; code < kValueCodes; ++code)
    table.offsets[code] = value_offset(fold_lanes(lanes[code]), counts[code]);
  return table;
}

/// `count` bits of `bytes`, at most 24, from bit `first` on. The highest bit of a byte is its first.
constexpr uint32_t read_bits(const uint8_t* bytes, int64_t first, int count) {
  if (count == 0) return 0;
  uint32_t word = 0;
  const int64_t begin = first / 8, end = (first + count + 7) / 8;
  for (int64_t i = begin; i < end; ++i) word = word << 8 | bytes[i];
  return word >> (8 * end - first - count) & ((1u << count) - 1);
}

/// Kept element i of a block, as a code has it.
struct KeptElement {
  uint32_t place;
  float value;
};
/// `code` is the code of the tensor. If values are coded, `table` is what it begins with.
constexpr KeptElement kept_element(const TopKBlockLayout& layout, const uint8_t* code, const ValueTable& table,
                                   int64_t block, int64_t i) {
  const int width = layout.place_bits(block);
  const uint32_t place = read_bits(code + layout.places_at(), layout.places_begin(block) + i * width, width);
  const int64_t number = layout.kept_before(block) + i;
  const uint8_t* const values = code + layout.values_at();
  if (layout.coded_values) return {place, table.value(read_bits(values, 2 * number, 2))};
  uint32_t bits = 0;
  for (int byte = 0; byte < 4; ++byte) bits |= uint32_t{values[4 * number + byte]} << 8 * byte;
  return {place, std::bit_cast<float>(bits)};
}

/// Checks what no block of a code holds: the table, and the bits that fill the last bytes of places and values. Throws
/// if they are wrong.
void check_topk_block_code(const TopKBlockLayout& layout, const uint8_t* code);
/// y += factor · one block of a code, on the CPU. If `senders` is not null, it has a number for each element of the
/// block, to which 1 is added if the element is not 0. Throws if the block is wrong.
void topk_block_add(const TopKBlockLayout& layout, const uint8_t* code, int64_t block, float factor, float* y,
                    float* senders = nullptr);

}  // namespace tern::kernels
