#include <cmath>

#include "tern/core/random.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/dropout.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// words[e] = word 4·block + e of `stream` for e in [0, 4·Blocks). Computes each round for all blocks, which
/// vectorises.
template <int Blocks>
void philox_words(const RandomStream& stream, uint32_t block, uint32_t* words) {
  uint32_t w0[Blocks], w1[Blocks], w2[Blocks], w3[Blocks];
  const auto counter = stream.counter(block);
  for (int i = 0; i < Blocks; ++i) {
    w0[i] = counter[0] + static_cast<uint32_t>(i);
    w1[i] = counter[1];
    w2[i] = counter[2];
    w3[i] = counter[3];
  }
  auto key = stream.key();
  for (int round = 0; round < kPhiloxRounds; ++round, key = philox_next_key(key)) {
    for (int i = 0; i < Blocks; ++i) {
      const auto next = philox_round({w0[i], w1[i], w2[i], w3[i]}, key);
      w0[i] = next[0];
      w1[i] = next[1];
      w2[i] = next[2];
      w3[i] = next[3];
    }
  }
  for (int i = 0; i < Blocks; ++i) {
    words[4 * i] = w0[i];
    words[4 * i + 1] = w1[i];
    words[4 * i + 2] = w2[i];
    words[4 * i + 3] = w3[i];
  }
}

constexpr int kBlocks = 64;  // blocks of four words to draw at once
constexpr int64_t kDraw = 4 * kBlocks;

// An element is dropped if the upper 24 bits of its word are below `threshold`, that is, if its uniform number is below
// p.

/// One sample of `numel` elements whose logical order is their order in memory.
template <class T>
void drop_in_order(const RandomStream& stream, uint32_t threshold, float scale, int64_t numel, const T* x, T* y) {
  uint32_t words[kDraw];
  for (int64_t begin = 0; begin < numel; begin += kDraw) {
    philox_words<kBlocks>(stream, static_cast<uint32_t>(begin / 4), words);
    const int64_t count = std::min(kDraw, numel - begin);
#pragma omp simd
    for (int64_t e = 0; e < count; ++e) {
      const float kept = scale * load(x + begin + e);
      store(y + begin + e, words[e] >> 8 >= threshold ? kept : 0.0f);
    }
  }
}

/// One channels-last sample: element (c, p) of `channels` × `pixels` lies at p · channels + c.
template <class T>
void drop_channels_last(const RandomStream& stream, uint32_t threshold, float scale, int64_t channels, int64_t pixels,
                        const T* x, T* y) {
  uint32_t words[kDraw];
  for (int64_t begin = 0; begin < channels * pixels; begin += kDraw) {
    philox_words<kBlocks>(stream, static_cast<uint32_t>(begin / 4), words);
    const int64_t end = std::min(begin + kDraw, channels * pixels);
    for (int64_t e = begin; e < end; ++e) {
      const int64_t i = e % pixels * channels + e / pixels;
      store(y + i, words[e - begin] >> 8 >= threshold ? scale * load(x + i) : 0.0f);
    }
  }
}

void dropout(const Tensor& x, const Tensor& samples, const kernels::DropoutDraw& draw, Tensor& y) {
  visit_fast(x.dtype(), "dropout", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    const auto* sample = samples.data<int64_t>();
    const int64_t numel = x.shape().numel_from(1);
    const bool in_order = x.format() == MemoryFormat::row_major;
    const int64_t channels = in_order ? 1 : x.size(1), pixels = numel / std::max<int64_t>(1, channels);
    const auto scale = static_cast<float>(1 / (1 - draw.probability));
    const auto threshold = static_cast<uint32_t>(std::ceil(draw.probability * 0x1p24));
    const int64_t grain = std::max<int64_t>(1, kGrain / (8 * std::max<int64_t>(1, numel)));
    parallel_vectorized(x.size(0), grain, [=](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const RandomStream stream(
            {draw.seed, Purpose::dropout, static_cast<uint32_t>(sample[n]), draw.step, draw.layer});
        if (in_order)
          drop_in_order(stream, threshold, scale, numel, in + n * numel, out + n * numel);
        else
          drop_channels_last(stream, threshold, scale, channels, pixels, in + n * numel, out + n * numel);
      }
    });
  });
}

}  // namespace

void provide_dropout() { kernels::dropout.provide(Target::cpu, dropout); }

}  // namespace tern::cpu
