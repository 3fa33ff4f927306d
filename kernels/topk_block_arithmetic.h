#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tern/core/error.h"
#include "tern/kernels/topk_block.h"

// The arithmetic of the codes of kernels/topk_block.h. Every target repeats it operation by operation.

namespace tern::kernels {

/// Magnitudes of floats compare as integers by these bits; those of NaN and infinities are the largest.
constexpr uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

/// On the CPU: the places of the k elements of largest magnitude, in rising order; of equal magnitudes, the first ones.
/// `magnitudes` are of `magnitude_bits`.
std::vector<uint32_t> largest(std::span<const uint32_t> magnitudes, int64_t k);

/// The code of a value, from the mean v̄ and the standard deviation σ of all values: clamp(round((v - v̄) / (6σ/4)) + 2,
/// 0, 3), with halves rounded to the even number. It is 2 if σ is 0.
constexpr uint8_t value_code(float v, double mean, double deviation) {
  const double place = deviation > 0 ? (v - mean) / (6 * deviation / kValueCodes) : 0;
  return static_cast<uint8_t>((place > -1.5 ? 1 : 0) + (place >= -0.5 ? 1 : 0) + (place > 0.5 ? 1 : 0));
}
/// σ over n - 1.
inline double deviation_of(double squares, int64_t n) {
  return n < 2 ? 0 : std::sqrt(squares / static_cast<double>(n - 1));
}

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
/// The offset of a code: the mean of v - v̄ over the `count` values with it.
constexpr float value_offset(double added, double count) {
  return count == 0 ? 0 : static_cast<float>(added / count);
}

/// Sums over the values have this many interleaved parts: value i is in part i % kTableLanes. The parts of 32 are added
/// in halves, and then these sums are.
inline constexpr int kTableLanes = 256;
template <class Value>
double table_sum(int64_t count, Value value) {
  constexpr int kGroup = 32, kGroups = kTableLanes / kGroup;
  double lanes[kTableLanes] = {};
  int64_t i = 0;
  for (; i + kTableLanes <= count; i += kTableLanes)
    for (int lane = 0; lane < kTableLanes; ++lane) lanes[lane] += value(i + lane);
  for (int lane = 0; i + lane < count; ++lane) lanes[lane] += value(i + lane);
  const auto fold = [](double* x, int n, int stride) {
    for (int half = n / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) x[j * stride] += x[(j + half) * stride];
  };
  for (int group = 0; group < kGroups; ++group) fold(lanes + group * kGroup, kGroup, 1);
  fold(lanes, kGroups, kGroup);
  return lanes[0];
}

/// Makes the table of the values and writes their codes. If there are at most four values, each has a code of its own,
/// so that none is lost.
inline ValueTable make_value_table(std::span<const float> values, std::span<uint8_t> codes) {
  const auto n = static_cast<int64_t>(values.size());
  const float* const v = values.data();
  const double mean = table_sum(n, [=](int64_t i) { return double{v[i]}; }) / static_cast<double>(n);
  const double squares = table_sum(n, [=](int64_t i) { return (v[i] - mean) * (v[i] - mean); });
  const double deviation = deviation_of(squares, n);
  for (int64_t i = 0; i < n; ++i)
    codes[static_cast<size_t>(i)] = n <= kValueCodes ? static_cast<uint8_t>(i) : value_code(v[i], mean, deviation);
  ValueTable table{.mean = static_cast<float>(mean)};
  for (uint8_t code = 0; code < kValueCodes; ++code) {
    const auto has = [=](int64_t i) { return codes[static_cast<size_t>(i)] == code; };
    table.offsets[code] = value_offset(table_sum(n, [=](int64_t i) { return has(i) ? v[i] - mean : 0.0; }),
                                       table_sum(n, [=](int64_t i) { return has(i) ? 1.0 : 0.0; }));
  }
  return table;
}

/// Byte `at` of a code, which is not one of the table. places, values and codes: one for each kept element.
constexpr uint8_t topk_block_byte(const TopKBlockLayout& layout, int64_t at, const uint32_t* places,
                                  const float* values, const uint8_t* codes) {
  uint32_t byte = 0;
  if (at < layout.values_at()) {
    for (int64_t bit = 8 * (at - layout.places_at()), end = bit + 8; bit < end;) {
      const int64_t block = layout.block_of_bit(bit);
      const int width = layout.place_bits(block);
      const int64_t begin = layout.places_begin(block), i = width == 0 ? layout.kept(block) : (bit - begin) / width;
      if (i >= layout.kept(block)) break;  // what is left of the last byte
      const auto first = static_cast<int>(bit - begin - i * width), left = static_cast<int>(end - bit),
                 taken = std::min(width - first, left);
      const uint32_t bits = places[layout.kept_before(block) + i] >> (width - first - taken) & ((1u << taken) - 1);
      byte |= bits << (left - taken);
      bit += taken;
    }
  } else if (layout.coded_values) {
    const int64_t first = 4 * (at - layout.values_at());
    for (int64_t i = first; i < std::min(first + 4, layout.kept()); ++i)
      byte |= uint32_t{codes[i]} << 2 * (3 - i + first);
  } else {
    const int64_t first = at - layout.values_at();
    byte = std::bit_cast<uint32_t>(values[first / 4]) >> 8 * (first % 4);
  }
  return static_cast<uint8_t>(byte);
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
/// `code` is the code of the tensor, and `table` its first bytes if values are coded.
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

/// y += one block of a code, on the CPU. Throws if the block is wrong.
inline void add_block(const TopKBlockLayout& layout, const uint8_t* code, int64_t block, float* y) {
  ValueTable table;
  if (layout.coded_values) std::memcpy(&table, code, sizeof table);
  const int64_t elements = layout.grid.elements(block);
  int64_t last = -1;
  for (int64_t i = 0; i < layout.kept(block); ++i) {
    const auto [place, value] = kept_element(layout, code, table, block, i);
    check(place > last && place < elements, "block ", block, " keeps element ", place, " after ", last,
          ", expected rising ones below ", elements);
    check(magnitude_bits(value) < kInfinityBits, "message holds a value that is not finite");
    y[layout.grid.at(block, place)] += value;
    last = place;
  }
}

}  // namespace tern::kernels
