#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/kernels/blocks.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

// Gradients of which each block keeps only the elements of largest magnitude; of equal magnitudes, the first ones
// (SparseLoCo, arXiv 2508.15706; DeMo, arXiv 2411.19870). The code of a tensor is the table of the values if they are
// coded, then the places of the kept elements in their blocks, then the values. Places rise within a block; each takes
// as many bits as its block needs. A coded value takes 2 bits, otherwise it is f32, little-endian. Fields of bits
// follow each other without gaps, the highest bit first; the places end with zeros up to a whole byte, and so do the
// coded values. Gradients are f32, row-major. Every target gives the same bits, unless a value is NaN.

namespace tern::kernels {

inline constexpr int kMostTopKBlockSide = 4096;
struct TopKBlockOptions {
  int64_t keep = 64;           ///< of a block of side × side elements; 1 to 4096²
  int64_t side = 64;           ///< of a matrix's blocks; 1 to 4096
  int64_t run = 4096;          ///< length of a vector's blocks; 1 to 4096²
  bool short_in_full = false;  ///< a shorter block keeps `keep` elements too, otherwise its share
  bool coded_values = true;    ///< 2 bits a value; otherwise f32
};

/// The number of codes for values. The table of a tensor is f32: the mean of all kept values, then for each code the
/// mean difference of its values from that mean.
inline constexpr int kValueCodes = 4;
inline constexpr int64_t kValueTableBytes = 4 * (1 + kValueCodes);

/// Where the parts of a tensor's code are. All its blocks keep as many elements as the first one, except the last.
class TopKBlockLayout {
 public:
  TopKBlockLayout(const Shape& shape, const TopKBlockOptions& options);

  BlockGrid grid;
  bool coded_values;

  /// Number of kept elements of a block.
  constexpr int64_t kept(int64_t block) const { return block < last_ ? kept_ : kept_in_last_; }
  /// Number of kept elements of all blocks before this one.
  constexpr int64_t kept_before(int64_t block) const { return block * kept_; }
  /// Number of kept elements of all blocks.
  constexpr int64_t kept() const { return last_ < 0 ? 0 : last_ * kept_ + kept_in_last_; }

  /// Bits of a place in this block.
  constexpr int place_bits(int64_t block) const { return block < last_ ? bits_ : bits_in_last_; }
  /// The first bit of this block's places, counted from the first bit of all places.
  constexpr int64_t places_begin(int64_t block) const { return block * kept_ * bits_; }
  /// The block whose places have this bit.
  constexpr int64_t block_of_bit(int64_t bit) const {
    return bits_ == 0 ? last_ : std::min(bit / (kept_ * bits_), last_);
  }

  /// The first byte of the places; the number of their bytes; the first byte of the values; the bytes of the code.
  constexpr int64_t places_at() const { return coded_values && last_ >= 0 ? kValueTableBytes : 0; }
  constexpr int64_t place_bytes() const {
    return last_ < 0 ? 0 : (places_begin(last_) + kept_in_last_ * bits_in_last_ + 7) / 8;
  }
  constexpr int64_t values_at() const { return places_at() + place_bytes(); }
  constexpr int64_t bytes() const { return values_at() + (coded_values ? (2 * kept() + 7) / 8 : 4 * kept()); }

 private:
  int64_t last_;  // block; -1 if there is none
  int64_t kept_ = 0, kept_in_last_ = 0;
  int bits_ = 0, bits_in_last_ = 0;
};

/// codes [u8, TopKBlockLayout::bytes()] = the code of g. Sets broken [f32, 1] to 1 if g has NaN or infinite elements,
/// or if a value of the table leaves the range of f32; otherwise `broken` stays as it is.
inline constinit Kernel<void(const Tensor& g, const TopKBlockOptions&, Tensor& codes, Tensor& broken)>
    topk_block_encode{"topk_block_encode"};

/// sum [f32, row-major] += factor · each message, one after another, in f32 without fused multiply-add. messages: u8
/// [messages, bytes]. In each message, the code begins at byte `codes_at`. A message is wrong if a place lies outside
/// its block or does not rise, or if a value is not finite. The CPU throws then; other devices leave out places outside
/// their block and check nothing else, because the sender checked its message.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, const TopKBlockOptions&, float factor,
                             Tensor& sum)>
    topk_block_decode_add{"topk_block_decode_add"};

/// mean [f32, row-major] = the sum of the messages, as `topk_block_decode_add` adds them to zeros, times 1 / messages.
/// Over the senders, an element is divided by the number of messages that decode it to a number other than 0. It is 0
/// if there is none.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, const TopKBlockOptions&, MeanOver, Tensor& mean)>
    topk_block_mean{"topk_block_mean"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_topk_block_encode(const Tensor& g, const TopKBlockLayout& layout, const Tensor& codes, const Tensor& broken);
void check_topk_block_decode(const Tensor& messages, int64_t codes_at, const TopKBlockLayout& layout,
                             const Tensor& sum);

}  // namespace tern::kernels
