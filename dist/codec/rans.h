#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern {

/// Asymmetric numeral systems (J. Duda, arXiv:1311.2540) in the range form: static frequencies of 16 bits, a state of
/// 64 bits, which moves 32 at a time. The message: u16 m, the frequencies of symbols 0 to m - 1 (seven bits a byte, the
/// lowest first, the top bit where more follow; they add up to 2^16), the state, the words in the order of decoding.
void append_rans(std::span<const uint16_t> symbols, std::vector<std::byte>& bytes);
/// An error unless `bytes` is a message of exactly as many symbols, all below `end`.
void read_rans(std::span<const std::byte> bytes, uint32_t end, std::span<uint16_t> symbols);

}  // namespace tern
