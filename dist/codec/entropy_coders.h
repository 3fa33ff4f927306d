#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tern/core/error.h"
#include "tern/kernels/entropy.h"

namespace tern {

/// Appends bits to bytes. The first bit is the top bit of each byte. Zeros fill the rest of the last byte.
class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  /// Writes the lowest `count` bits of `value`, the highest of them first. `count` is at most 64.
  void write(uint64_t value, int count) {
    while (count > 0) {
      if (free_ == 0) {
        bytes_.push_back(std::byte{0});
        free_ = 8;
      }
      const int taken = std::min(count, free_);
      count -= taken;
      free_ -= taken;
      bytes_.back() |= static_cast<std::byte>((value >> count & ((1u << taken) - 1)) << free_);
    }
  }

 private:
  std::vector<std::byte>& bytes_;
  int free_ = 0;
};

/// Reads what a BitWriter wrote. Throws if a read goes past the end.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t bit() {
    check(next_ < 8 * bytes_.size(), "message ends within a code word");
    const auto byte = static_cast<uint32_t>(bytes_[next_ / 8]);
    return byte >> (7 - next_++ % 8) & 1u;
  }
  /// Throws unless only the zeros of the last byte are left.
  void finish() {
    check(8 * bytes_.size() - next_ < 8, "message goes on after its last code word");
    while (next_ < 8 * bytes_.size()) check(bit() == 0, "message ends in bits that are not zero");
  }

 private:
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
};

/// Elias' omega code (1975; QSGD calls it "Elias recursive coding") of a number of 1 or more. Examples: the code of 1
/// is 0, of 2 is 10 0, of 4 is 10 100 0.
void write_omega(BitWriter& bits, uint64_t number);
uint64_t read_omega(BitReader& bits);
using kernels::omega_bits;

/// Appends levels as the shorter of two codes. The first bit tells which. Numbers are omega codes.
/// Bit 0, sparse (QSGD section 3.1): the count of nonzero levels plus 1. Then for each nonzero level: the distance from
/// the previous one (for the first: its index plus 1), its sign, its magnitude.
/// Bit 1, dense: for each level its magnitude plus 1, then a sign unless the level is zero.
void append_elias(std::span<const int32_t> levels, std::vector<std::byte>& bytes);
/// Throws unless `bytes` hold exactly levels.size() levels, all within ±most.
void read_elias(std::span<const std::byte> bytes, int32_t most, std::span<int32_t> levels);

inline constexpr int64_t kTritsPerByte = 5;

/// Packs five numbers of -1, 0 and 1 per byte: Σ (x_i + 1)·3^i. The last byte is filled up with the number 0.
void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes);
/// Throws if a byte holds more than 3^5 - 1, or if `bytes` are not trit_bytes(values.size()) bytes.
void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values);
constexpr int64_t trit_bytes(int64_t n) { return (n + kTritsPerByte - 1) / kTritsPerByte; }

}  // namespace tern
