#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern {

// Asymmetric numeral systems (J. Duda, arXiv:1311.2540), the range form (rANS), with static frequencies of 16 bits, and
// states of 64 bits that move 32 bits at a time. A message holds u16 m and the frequencies of symbols 0 to m - 1, which
// add up to 2^16. A frequency takes seven bits per byte, the lowest first; the top bit is set if more bytes follow.
//
// Fewer than 65,536 symbols are one stream: its state (u64), then the words (u32) in the order of decoding. For more
// symbols, a byte follows the table. If it is 0, they are one stream too. Otherwise it is log2 B: the symbols are cut
// into blocks of B, 65,536 or more; the last block also has the rest. Symbol i of a block belongs to stream i % 32 of
// the block, so that vectors and GPUs can work on 32 symbols at once. The message then holds the number of words of
// each block (u32), then each block: its 32 states, and its words in the order in which its symbols take them.

/// Appends the message of `symbols`, of which there must be one or more.
void append_rans(std::span<const uint16_t> symbols, std::vector<std::byte>& bytes);
/// Throws unless `bytes` are a message of exactly symbols.size() symbols, all below `end`.
void read_rans(std::span<const std::byte> bytes, uint32_t end, std::span<uint16_t> symbols);

}  // namespace tern
