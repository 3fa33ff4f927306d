#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tern/core/error.h"

namespace tern {

/// Appends bits, the first in the top of each byte; the last byte is filled up with zeros.
class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  /// The lowest `count` bits of `value`, the highest of them first; count at most 64.
  void write(uint64_t value, int count) {
    for (int bit = count - 1; bit >= 0; --bit) {
      if (free_ == 0) {
        bytes_.push_back(std::byte{0});
        free_ = 8;
      }
      bytes_.back() |= static_cast<std::byte>((value >> bit & 1u) << --free_);
    }
  }

 private:
  std::vector<std::byte>& bytes_;
  int free_ = 0;
};

/// Reads what a BitWriter wrote; an error past the end.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t bit() {
    check(next_ < 8 * bytes_.size(), "message ends within a code word");
    const auto byte = static_cast<uint32_t>(bytes_[next_ / 8]);
    return byte >> (7 - next_++ % 8) & 1u;
  }
  /// An error unless only the zeros of the last byte are left.
  void finish() {
    check(8 * bytes_.size() - next_ < 8, "message goes on after its last code word");
    while (next_ < 8 * bytes_.size()) check(bit() == 0, "message ends in bits that are not zero");
  }

 private:
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
};

/// Elias' omega code (1975; QSGD's "Elias recursive coding") of a number of 1 or more: 1 is 0, 2 is 10 0, 4 is 10 100
/// 0.
void write_omega(BitWriter& bits, uint64_t number);
uint64_t read_omega(BitReader& bits);
int omega_bits(uint64_t number);

/// Levels as the shorter of two codes, told apart by a first bit. 0, sparse (QSGD section 3.1): the count of levels
/// that are not zero, plus 1, then for each the distance from the one before (the first: its index plus 1), its sign,
/// its size. 1, dense: for each level its size plus 1, then a sign unless it is zero. Numbers are omega codes.
void append_elias(std::span<const int32_t> levels, std::vector<std::byte>& bytes);
/// An error unless `bytes` code exactly as many levels, none beyond ±most.
void read_elias(std::span<const std::byte> bytes, int32_t most, std::span<int32_t> levels);
/// The most bytes that n levels within ±most take.
int64_t most_elias_bytes(int64_t n, int64_t most);

/// Asymmetric numeral systems (J. Duda, arXiv:1311.2540) in the range form: static frequencies of 16 bits, a state of
/// 64 bits, which moves 32 at a time. The message: u16 m, the frequencies of symbols 0 to m - 1 (seven bits a byte, the
/// lowest first, the top bit where more follow; they add up to 2^16), the state, the words in the order of decoding.
void append_rans(std::span<const uint16_t> symbols, std::vector<std::byte>& bytes);
/// An error unless `bytes` is a message of exactly as many symbols, all below `end`.
void read_rans(std::span<const std::byte> bytes, uint32_t end, std::span<uint16_t> symbols);

inline constexpr int64_t kTritsPerByte = 5;

/// Five numbers of -1, 0 and 1 in a byte: Σ (x_i + 1)·3^i, the last byte filled up with zeros.
void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes);
/// An error where a byte holds more than 3^5 - 1, or there are not trit_bytes of them.
void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values);
constexpr int64_t trit_bytes(int64_t n) { return (n + kTritsPerByte - 1) / kTritsPerByte; }

}  // namespace tern
