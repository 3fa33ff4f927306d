#pragma once

#include <cstdint>

// Loops written with vector types. The headers of this folder hold them. A file for each instruction set includes them:
// here for four floats, which every processor can compute, and in x86 for wider vectors. The codecs' loops have files
// of their own, because products and sums in them must not be fused.

namespace tern::cpu::simd {

/// C [rows, columns] = Σ_s A_s [rows, depth] · B_s [depth, columns], by one thread. The inner loop of tern's own
/// convolutions. A_s begins at a + a_offsets[s]. B is cut into panels of 2·width columns. Within a panel, the rows of
/// B_0, B_1, ... follow each other, `b_row` floats apart. Every panel must be readable up to a multiple of `tail`
/// columns.
struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_depth = 1;  ///< floats between rows, and along the depth; one of them is 1
  const int64_t* a_offsets = nullptr;
  int64_t segments = 1;
  const float* b = nullptr;
  int64_t b_row = 0, b_panel = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;      ///< adds to C
  const float* bias = nullptr;  ///< [columns], or null
  bool relu = false;            ///< applies max(·, 0) last
};

/// Winograd's transforms, `to_points` and `from_points` of make_kernels.h.
using ToPoints = void (*)(const float* const* pixels, int64_t channels, float* points, int64_t stride);
using FromPoints = void (*)(const float* points, int64_t stride, int64_t channels, const float* bias, bool relu,
                            float* const* pixels);

/// The transforms of F(outputs x outputs, taps x taps). The forward pass uses `patch`, `filter` and `output`. The
/// gradient of the weights correlates the patch with dy instead of a filter and has `taps` x `taps` outputs: it uses
/// `patch`, `gradient` and `weights`.
struct WinogradTransforms {
  int64_t outputs, taps;
  int64_t side;  ///< of a patch and of the square of its points: outputs + taps - 1
  ToPoints patch, filter, gradient;
  FromPoints output, weights;
};

/// A place in the source of a depthwise correlation, and the place in the kernel that it meets, along one axis.
struct Tap {
  int32_t source, kernel;
};

/// One row of a depthwise correlation: y[j, :] = Σ over the taps of the row and of place j of source · weights [+
/// bias], then max(·, 0) if `relu`.
struct DepthwiseRow {
  int64_t channels, width;  ///< of y
  const float* source;      ///< [H, W, channels]
  int64_t source_row;       ///< floats in a row of the source
  const float* weights;     ///< [kh, kw, channels]
  int64_t window_w;         ///< kw
  const float* bias;        ///< [channels], or null
  bool relu;
  const Tap *taps, *taps_end;  ///< of the row
  const Tap* columns;          ///< of all places of the row, one after another
  const int64_t* column_ends;  ///< [width]: where the taps of each place end
  float* y;                    ///< [width, channels]
};

/// A chunk of a codec is 256 elements: 8 groups of 32. Their random bits are the 8 halves of the words of 32 Philox
/// blocks.
inline constexpr int kChunk = 256, kGroup = 32, kLanes = 16;

/// The inputs of Philox for the blocks of one random stream: the keys of the ten rounds, and the last words of the
/// counter.
struct DrawKeys {
  uint32_t key[10][2];
  uint32_t counter[3];
};

inline constexpr int64_t kMostHadamard = 4096;  ///< elements of a bucket of the Hadamard code

/// A bucket of the Hadamard code, decoded: to = factor · (from + scale · DH(the levels of the codes)). `from` may be
/// `to`, or null for zeros.
struct CodedBucket {
  const uint32_t* planes;
  int64_t count;
  const float* levels;
  int bits;
  float scale;
  const float* from;
  float factor;
  float* to;
};

/// Codec loops over whole chunks, groups and rows. The arithmetic is that of codec_arithmetic.h.
struct CodecLoops {
  /// planes[8·bits words] = the codes of a chunk whose random bits begin at Philox block `block`. undecided[8 words]
  /// has one bit per element: if it is set, the element's 16 random bits do not decide, and its code is not valid.
  void (*quantize)(const DrawKeys& keys, uint32_t block, const float* g, const float* factors, float limit, int bits,
                   uint32_t* planes, uint32_t* undecided);
  /// y[32] += the values of a group's codes. units[32].
  void (*dequantize_add)(const uint32_t* planes, int bits, const float* units, float* y);
  /// masks[count / 32] = a bit for each of `count` magnitudes. It is set if the magnitude is at least `least`. `count`
  /// is a multiple of 32, and all magnitudes are below 2^31.
  void (*at_least)(const uint32_t* magnitudes, int64_t count, uint32_t least, uint32_t* masks);
  /// The same, but places = the numbers of those magnitudes, in rising order, and chosen = the magnitudes. Returns how
  /// many there are. Both have room for kLanes more.
  int64_t (*places_at_least)(const uint32_t* magnitudes, int64_t count, uint32_t least, uint32_t* places,
                             uint32_t* chosen);
  /// Largest |x| of `count` elements; NaN if one is NaN.
  float (*largest)(const float* x, int64_t count);
  /// Largest |x|, Σx and Σx² of `count` elements, in 16 interleaved sums that are then added in halves.
  void (*statistics)(const float* x, int64_t count, double& largest, double& sum, double& squares);
  /// Σx and Σ|x| of `count` finite elements, in 32 interleaved sums that are then added in halves, and the number of
  /// those below 0.
  void (*sign_sums)(const float* x, int64_t count, double& sum, double& magnitudes, int64_t& negatives);
  /// The loops of the Hadamard code, over a bucket of `count` elements: a power of two from kGroup to 4096. Its signs
  /// come from the Philox blocks from `block` on. `levels` are the positive ones, 2^(bits - 1) rising numbers; element
  /// i has bit i % 32 of word i / 32 of each of `bits` planes, which are count / 32 words long. to = HD(factor · from);
  /// `to` may be `from`. With AVX-512, prefetches the first half of the bucket behind `from`; otherwise more.
  void (*rotate)(const DrawKeys& keys, uint32_t block, const float* from, float factor, int64_t count, float* to);
  /// planes = the codes of the nearest levels. Returns Σ x · level, summed as by `statistics`. Prefetches half a
  /// bucket from `next` on.
  double (*nearest_levels)(const float* x, int64_t count, const float* levels, int bits, uint32_t* planes,
                           const float* next);
  /// With AVX-512, prefetches the bucket behind `to`; otherwise more.
  void (*add_levels)(const DrawKeys& keys, uint32_t block, const CodedBucket& bucket);
};

/// The loops of one instruction set.
struct Kernels {
  int64_t width;  ///< floats in a vector
  int64_t tail;   ///< floats in the shorter vector that ends a row if that is enough
  void (*multiply)(const Product&);
  WinogradTransforms winograd_3x3;  ///< F(4 x 4, 3 x 3)
  WinogradTransforms winograd_5x5;  ///< F(4 x 4, 5 x 5)
  void (*depthwise_row)(const DepthwiseRow&);
  /// sums[c] += Σ over o < count of x[o·x_step + c] · dy[o·channels + c]
  void (*depthwise_weights)(const float* x, int64_t x_step, const float* dy, int64_t count, int64_t channels,
                            float* sums);
  const CodecLoops* codec;
};

/// The loops for the instruction set that `vector_set` returns.
const Kernels& kernels();

extern const Kernels baseline_kernels;
extern const CodecLoops baseline_codec_loops;

}  // namespace tern::cpu::simd
