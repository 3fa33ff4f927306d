#pragma once

#include <algorithm>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

/// How the elements of each channel lie in a tensor [N, C] or [N, C, H, W], and how sums over a channel are cut into
/// chunks: a function of the shape alone. Channels-last (and rank 2): rows of all channels, a chunk is some rows.
/// Row-major: planes of one channel, a chunk is one plane.
struct ChannelLayout {
  explicit ChannelLayout(const Tensor& x)
      : interleaved(x.rank() == 2 || x.format() == MemoryFormat::channels_last),
        channels(x.size(1)),
        count(x.numel() / std::max<int64_t>(1, channels)),
        chunk(interleaved ? std::max<int64_t>(16, kGrain / std::max<int64_t>(1, channels)) : x.shape().numel_from(2)),
        chunks(chunk == 0 ? 0 : (count + chunk - 1) / chunk) {}

  /// Elements of one channel in chunk `index`.
  int64_t chunk_count(int64_t index) const { return std::min(chunk, count - index * chunk); }
  /// Where the first element of `channel` in chunk `index` lies.
  int64_t chunk_begin(int64_t index, int64_t channel) const {
    return interleaved ? index * chunk * channels + channel : (index * channels + channel) * chunk;
  }

  bool interleaved;
  int64_t channels, count, chunk, chunks;
};

/// Calls visit(i, c) for every element i, of channel c; vectorised, in parallel.
template <class Visit>
void for_each_in_channels(const ChannelLayout& layout, Visit visit) {
  const int64_t channels = layout.channels, chunk = layout.chunk;
  if (layout.interleaved) {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, channels));
    parallel_vectorized(layout.count, grain, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) visit(row * channels + c, c);
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, chunk));
  parallel_vectorized(layout.chunks * channels, grain, [=](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const int64_t c = plane % channels;
#pragma omp simd
      for (int64_t i = plane * chunk; i < (plane + 1) * chunk; ++i) visit(i, c);
    }
  });
}

struct Terms {
  float first, second;
};

/// Two sums at once over every channel, by chunks: first[k·C + c] and second[k·C + c] are the sums over chunk k of what
/// terms(i, begin, c) returns for element i of channel c; `begin` is the chunk's first element of that channel.
template <class Function>
void chunk_sums(const ChannelLayout& layout, float* first, float* second, Function terms) {
  const int64_t channels = layout.channels, chunk = layout.chunk;
  if (layout.interleaved) {
    parallel_vectorized(layout.chunks, 1, [=](int64_t first_chunk, int64_t last_chunk) {
      constexpr int64_t kStrip = 64;
      for (int64_t k = first_chunk; k < last_chunk; ++k)
        for (int64_t strip = 0; strip < channels; strip += kStrip) {
          const int64_t width = std::min(kStrip, channels - strip), begin = layout.chunk_begin(k, strip);
          float sum[kStrip] = {}, other[kStrip] = {};
          for (int64_t row = 0; row < layout.chunk_count(k); ++row) {
#pragma omp simd
            for (int64_t c = 0; c < width; ++c) {
              const Terms term = terms(begin + row * channels + c, begin + c, strip + c);
              sum[c] += term.first;
              other[c] += term.second;
            }
          }
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) {
            first[k * channels + strip + c] = sum[c];
            second[k * channels + strip + c] = other[c];
          }
        }
    });
    return;
  }
  parallel_vectorized(layout.chunks * channels, 1, [=](int64_t first_plane, int64_t last_plane) {
    for (int64_t plane = first_plane; plane < last_plane; ++plane) {
      const int64_t begin = plane * chunk, c = plane % channels;
      float sum = 0, other = 0;
#pragma omp simd reduction(+ : sum, other)
      for (int64_t i = begin; i < begin + chunk; ++i) {
        const Terms term = terms(i, begin, c);
        sum += term.first;
        other += term.second;
      }
      first[plane] = sum;
      second[plane] = other;
    }
  });
}

}  // namespace tern::cpu
