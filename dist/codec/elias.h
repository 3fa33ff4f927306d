#pragma once

#include "tern/dist/codec/bits.h"

namespace tern {

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

}  // namespace tern
