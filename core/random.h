#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tern {

/// What a random number is used for. It is part of every counter, so that no two uses share a number. The values are
/// part of the reproducibility contract: append new ones, never reorder.
enum class Purpose : uint8_t {
  initialize = 1,
  shuffle = 2,
  augment = 3,
  dropout = 4,
  digits = 5,
  codec = 6,
  subnet = 7,
  tones = 8,
  requantize = 9,
  application = 10,  ///< data sets and tasks of an application
  extreme = 11,
  power_sgd = 12,
  pairs = 13,
  test = 255
};

/// One round of Philox. `philox_next_key` gives the key of the next round.
constexpr std::array<uint32_t, 4> philox_round(const std::array<uint32_t, 4>& counter,
                                               const std::array<uint32_t, 2>& key) {
  const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
  const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
  return {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
}
constexpr std::array<uint32_t, 2> philox_next_key(const std::array<uint32_t, 2>& key) {
  return {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
}
inline constexpr int kPhiloxRounds = 10;

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Returns 128 random bits, a
/// pure function of counter and key. The result is the same on every device.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    counter = philox_round(counter, key);
    key = philox_next_key(key);
  }
  return counter;
}

/// Names one sequence of random numbers. `owner` is the global index of a sample (data, dropout) or the rank (codecs).
/// `step` is the training step, or the epoch for shuffles. `tensor` < 2^24 distinguishes layers or tensors.
struct RandomKey {
  uint64_t seed = 0;
  Purpose purpose = Purpose::test;
  uint32_t owner = 0;
  uint32_t step = 0;
  uint32_t tensor = 0;
};

/// The random numbers of one `RandomKey`, by element index, in any order. A pure value.
class RandomStream {
 public:
  constexpr explicit RandomStream(const RandomKey& key)
      : seed_{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
        tail_{key.owner, key.step, static_cast<uint32_t>(key.purpose) << 24 | (key.tensor & 0xffffffu)} {}

  /// Random words 4·block to 4·block + 3.
  constexpr std::array<uint32_t, 4> block(uint32_t block) const { return philox(counter(block), key()); }
  /// The counter that `block` passes to Philox, for code that computes many blocks at once.
  constexpr std::array<uint32_t, 4> counter(uint32_t block) const { return {block, tail_[0], tail_[1], tail_[2]}; }
  constexpr std::array<uint32_t, 2> key() const { return seed_; }
  constexpr uint32_t word(uint64_t element) const { return block(static_cast<uint32_t>(element >> 2))[element & 3]; }
  /// Uniform in [0, 1), with 24 random bits.
  constexpr float uniform(uint64_t element) const { return static_cast<float>(word(element) >> 8) * 0x1p-24f; }
  /// Uniform in {0, ..., n - 1}, with a bias below n / 2^32.
  constexpr uint32_t below(uint64_t element, uint32_t n) const {
    return static_cast<uint32_t>((uint64_t{word(element)} * n) >> 32);
  }
  /// Standard normal (Box–Muller transform of words 2·element and 2·element + 1).
  float normal(uint64_t element) const;

 private:
  std::array<uint32_t, 2> seed_;
  std::array<uint32_t, 3> tail_;
};

/// Puts `order` into a random order (Fisher–Yates), with the numbers order.size() - 1 to 1 of `random`.
void shuffle(std::span<int64_t> order, const RandomStream& random);

/// Returns `bytes` random bytes from the system as hexadecimal digits, two per byte. With enough bytes, nobody can
/// guess the result and no other process gets the same one. Throws if the system gives no random bytes.
std::string random_id(size_t bytes);

}  // namespace tern
