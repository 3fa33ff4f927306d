#include "tern/dist/codec/entropy_coders.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tern/core/error.h"

namespace tern {
namespace {

uint64_t size_of_level(int32_t level) { return static_cast<uint64_t>(std::abs(level)); }

int64_t dense_bits(std::span<const int32_t> levels) {
  int64_t bits = 0;
  for (const int32_t level : levels) bits += omega_bits(size_of_level(level) + 1) + (level != 0);
  return bits;
}

int64_t sparse_bits(std::span<const int32_t> levels) {
  int64_t bits = 0;
  uint64_t count = 0, gap = 0;
  for (const int32_t level : levels) {
    ++gap;
    if (level == 0) continue;
    bits += omega_bits(gap) + 1 + omega_bits(size_of_level(level));
    ++count;
    gap = 0;
  }
  return bits + omega_bits(count + 1);
}

int32_t checked_level(bool negative, uint64_t size, int32_t most) {
  check(size <= static_cast<uint64_t>(most), "message holds level ", size, ", beyond ", most);
  return negative ? -static_cast<int32_t>(size) : static_cast<int32_t>(size);
}

constexpr auto kTrits = static_cast<size_t>(kTritsPerByte);

}  // namespace

void write_omega(BitWriter& bits, uint64_t number) {
  uint64_t groups[8];
  int count = 0;
  for (; number > 1; number = static_cast<uint64_t>(std::bit_width(number)) - 1) groups[count++] = number;
  while (count > 0) {
    const uint64_t group = groups[--count];
    bits.write(group, std::bit_width(group));
  }
  bits.write(0, 1);
}

uint64_t read_omega(BitReader& bits) {
  uint64_t number = 1;
  while (bits.bit() == 1) {
    check(number < 64, "message holds a number of more than 64 bits");
    uint64_t group = 1;
    for (uint64_t i = 0; i < number; ++i) group = group << 1 | bits.bit();
    number = group;
  }
  return number;
}

void append_elias(std::span<const int32_t> levels, std::vector<std::byte>& bytes) {
  BitWriter bits(bytes);
  const bool dense = dense_bits(levels) < sparse_bits(levels);
  bits.write(dense ? 1 : 0, 1);
  if (!dense)
    write_omega(bits, static_cast<uint64_t>(levels.size() - static_cast<size_t>(std::ranges::count(levels, 0))) + 1);
  uint64_t gap = 0;
  for (const int32_t level : levels) {
    ++gap;
    if (dense) write_omega(bits, size_of_level(level) + 1);
    if (level == 0) continue;
    if (!dense) write_omega(bits, gap);
    bits.write(level < 0 ? 1 : 0, 1);
    if (!dense) write_omega(bits, size_of_level(level));
    gap = 0;
  }
}

void read_elias(std::span<const std::byte> bytes, int32_t most, std::span<int32_t> levels) {
  BitReader bits(bytes);
  std::ranges::fill(levels, 0);
  if (bits.bit() == 1) {
    for (int32_t& level : levels) {
      const uint64_t size = read_omega(bits) - 1;
      level = checked_level(size != 0 && bits.bit() == 1, size, most);
    }
  } else {
    const uint64_t count = read_omega(bits) - 1;
    check(count <= levels.size(), "message announces ", count, " levels that are not zero, of ", levels.size());
    size_t end = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t gap = read_omega(bits);
      check(gap <= levels.size() - end, "message goes beyond element ", levels.size());
      end += gap;
      const bool negative = bits.bit() == 1;
      levels[end - 1] = checked_level(negative, read_omega(bits), most);
    }
  }
  bits.finish();
}

void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes) {
  for (size_t first = 0; first < values.size(); first += kTrits) {
    int32_t byte = 0;
    for (size_t i = kTrits; i-- > 0;) byte = 3 * byte + 1 + (first + i < values.size() ? values[first + i] : 0);
    bytes.push_back(static_cast<std::byte>(byte));
  }
}

void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values) {
  check(static_cast<int64_t>(bytes.size()) == trit_bytes(static_cast<int64_t>(values.size())), "codes have ",
        bytes.size(), " bytes, expected ", trit_bytes(static_cast<int64_t>(values.size())));
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<int32_t>(bytes[i]);
    check(byte < 243, "byte ", i, " holds ", byte, ", beyond five trits");
    for (size_t e = kTrits * i; e < std::min(kTrits * (i + 1), values.size()); ++e, byte /= 3) values[e] = byte % 3 - 1;
  }
}

}  // namespace tern
