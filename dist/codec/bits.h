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

}  // namespace tern
