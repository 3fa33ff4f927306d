#pragma once

#include <algorithm>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cpu/codec/loops.h"

namespace tern::cpu::codec {

using kernels::kCodecChunk;
using kernels::kCodecGroup;
static_assert(kChunk == kCodecChunk && kGroup == kCodecGroup && kLanes == kernels::kStatisticsLanes);

/// Chunks worth a thread of their own.
inline constexpr int64_t kChunksPerThread = 64;
/// Words of the widest chunk's planes.
inline constexpr int64_t kMostPlanes = kCodecChunk / kCodecGroup * kernels::code_bits(kernels::kMostLevels);

/// Elements in a bucket, where `bucket` 0 is all n.
inline int64_t bucket_width(int64_t n, int64_t bucket) { return bucket == 0 ? std::max<int64_t>(1, n) : bucket; }

/// The sums of one run: at most kStatisticsRun elements.
inline kernels::CodecSums run_sums(const float* x, int64_t count) {
  kernels::CodecSums run;
  loops().statistics(x, count, run.largest, run.sum, run.squares);
  return run;
}

/// What each element of a chunk takes from its bucket: of(the bucket's value). Most chunks lie in the bucket of the one
/// before, and cost nothing.
template <class Of>
class BucketValues {
 public:
  BucketValues(const float* per_bucket, int64_t width, Of of) : per_bucket_(per_bucket), width_(width), of_(of) {}

  /// For elements [first, first + count), at most a chunk.
  const float* operator()(int64_t first, int64_t count) {
    if (first >= begin_ && first + count <= end_) return values_;
    begin_ = end_ = 0;
    for (int64_t i = 0; i < count;) {
      const int64_t bucket = (first + i) / width_, next = (bucket + 1) * width_;
      const int64_t end = std::min(kCodecChunk, next - first);
      std::fill(values_ + i, values_ + end, of_(per_bucket_[bucket]));
      if (i == 0 && end == kCodecChunk) {
        begin_ = first;
        end_ = next;
      }
      i = end;
    }
    return values_;
  }

 private:
  const float* per_bucket_;
  int64_t width_;
  Of of_;
  int64_t begin_ = 0, end_ = 0;  // elements whose bucket fills all of values_
  float values_[kCodecChunk] = {};
};

/// Copies the planes of `count` elements out of or into bytes, where those of a last short group are cut.
template <class Copy>
void for_each_plane(int64_t count, int bits, Copy copy) {
  const int64_t whole = count / kCodecGroup * bits, rest = (count % kCodecGroup + 7) / 8;
  if (whole != 0) copy(0, 0, 4 * whole);
  if (rest == 0) return;
  for (int bit = 0; bit < bits; ++bit) copy(whole + bit, 4 * whole + bit * rest, rest);
}

}  // namespace tern::cpu::codec
