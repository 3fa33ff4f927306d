#pragma once

#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/entropy_arithmetic.h"

namespace tern::cuda {

/// The CUDA blocks of a tensor: one for each block of rANS that the tensor can have.
constexpr int64_t entropy_blocks(int64_t numel) { return std::max<int64_t>(1, numel >> kernels::kLeastRansBlockBits); }

/// The elements of a block of rANS.
struct RansBlock {
  int64_t begin, end;

  __device__ RansBlock(int64_t numel, int bits, int64_t block)
      : begin(block << bits), end(block + 1 == kernels::rans_blocks(numel, bits) ? numel : (block + 1) << bits) {}
  __device__ int64_t first_group() const { return begin / kernels::kCodecGroup; }
  __device__ int64_t last_group() const { return (end - 1) / kernels::kCodecGroup; }
};

/// Copies this block's share of `count` bytes. All threads of `blocks` blocks call it.
__device__ inline void copy_share(uint8_t* to, const uint8_t* from, int64_t count, int64_t block, int64_t blocks) {
  const int64_t threads = blockDim.x;
  for (int64_t i = block * threads + threadIdx.x; i < count; i += blocks * threads) to[i] = from[i];
}

/// codes[k] = this lane's code in group `last` - k; 0 if that is before group `first`, or beyond the last element.
template <int Count>
__device__ void load_codes(const uint8_t* planes, int64_t numel, int bits, int64_t first, int64_t last,
                           uint32_t (&codes)[Count]) {
#pragma unroll
  for (uint32_t& code : codes) code = 0;
  for (int bit = 0; bit < bits; ++bit) {
#pragma unroll
    for (int k = 0; k < Count; ++k) {
      if (last - k < first) continue;
      const auto plane = kernels::codec_plane(numel, bits, last - k, bit);
      codes[k] |= (load_bytes(planes + plane.at, plane.bytes()) >> lane_id() & 1u) << bit;
    }
  }
}

/// Stores the planes of a group, of which each lane has one code. Lanes beyond the last element have 0.
__device__ inline void store_codes(uint8_t* planes, int64_t numel, int bits, int64_t group, uint32_t code) {
  for (int bit = 0; bit < bits; ++bit) {
    const uint32_t word = __ballot_sync(~0u, (code >> bit & 1u) != 0);
    const auto plane = kernels::codec_plane(numel, bits, group, bit);
    if (lane_id() == bit) store_bytes(planes + plane.at, plane.bytes(), word);
  }
}

/// The items that a thread handles, if each thread of the block has neighbouring ones.
struct OwnItems {
  __device__ explicit OwnItems(int count) {
    const int each = (count + kThreads - 1) / kThreads;
    begin = std::min(count, static_cast<int>(threadIdx.x) * each);
    end = std::min(count, begin + each);
  }
  int begin, end;
};

/// Puts a code word, its highest bit first, into zeros. The first bit of `words` is the highest of the first word.
__device__ inline void put_bits(uint32_t* words, uint64_t at, kernels::BitCode code) {
  for (int taken = 0; code.length > 0; code.length -= taken, at += static_cast<uint64_t>(taken)) {
    const auto room = static_cast<int>(32 - at % 32);
    taken = std::min(room, code.length);
    const uint64_t some = code.bits >> (code.length - taken) & ((uint64_t{1} << taken) - 1);
    atomicOr(&words[at / 32], static_cast<uint32_t>(some << (room - taken)));
  }
}

/// Memory of the device that lives as long as this does.
class Scratch {
 public:
  explicit Scratch(Device device) : device_(device) {}
  template <class T>
  T* take(int64_t count) {
    held_.push_back(Tensor::empty({count * static_cast<int64_t>(sizeof(T))}, {.dtype = DType::u8, .device = device_}));
    return reinterpret_cast<T*>(held_.back().data<uint8_t>());
  }

 private:
  Device device_;
  std::vector<Tensor> held_;
};

}  // namespace tern::cuda
