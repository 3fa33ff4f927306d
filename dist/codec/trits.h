#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern {

inline constexpr int64_t kTritsPerByte = 5;

/// Five numbers of -1, 0 and 1 in a byte: Σ (x_i + 1)·3^i, the last byte filled up with zeros.
void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes);
/// An error where a byte holds more than 3^5 - 1, or there are not trit_bytes of them.
void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values);
constexpr int64_t trit_bytes(int64_t n) { return (n + kTritsPerByte - 1) / kTritsPerByte; }

}  // namespace tern
