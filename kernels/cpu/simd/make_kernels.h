#pragma once

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/simd/vector.h"

// The products, Winograd transforms and depthwise sums of one instruction set. vector.h says what this file may
// contain.

namespace tern::cpu::simd {
namespace {

template <int kWidth>
using Floats = Vector<float, kWidth>;

template <int kWidth>
inline Floats<kWidth> load(const float* p) {
  Floats<kWidth> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <int kWidth>
inline void store(float* p, Floats<kWidth> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

/// Floats in the vector that ends a row if that is enough. From 16 floats on, it has half the width, because some
/// processors execute the full width in two halves.
template <int kWidth>
constexpr int kTailWidth = kWidth > 8 ? kWidth / 2 : kWidth;

/// The maximum number of rows of C, `kVectors` vectors wide, that fit with a row of B in 16 registers (32 for AVX-512).
template <int kWidth, int kVectors>
constexpr int kMaxRows = (kWidth == 16 ? 24 : 12) / kVectors;

/// Accumulates kRows rows and kVectors vectors of C in registers over the whole depth. If kUnitDepth is true, a_depth
/// is 1; otherwise a_row is 1.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
inline void accumulate_tile(const Product& p, const float* a, const float* b, Floats<kWidth> (&sum)[kRows][kVectors]) {
  const int64_t a_row = kUnitDepth ? p.a_row : 1, a_depth = kUnitDepth ? 1 : p.a_depth;
  const int64_t b_row = p.b_row;
  for (int64_t s = 0; s < p.segments; ++s) {
    const float* from = a + (p.a_offsets ? p.a_offsets[s] : 0);
#pragma GCC unroll 2
    for (int64_t d = p.depth; d > 0; --d) {
      Floats<kWidth> row[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) row[v] = load<kWidth>(b + v * kWidth);
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        const float scale = from[r * a_row];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] += scale * row[v];
      }
      from += a_depth;
      b += b_row;
    }
  }
}

/// Stores the elements of a tile that lie inside C, `columns` per row, with bias and relu.
template <int kWidth, int kRows, int kVectors>
inline void store_tile(const Product& p, const Floats<kWidth> (&sum)[kRows][kVectors], const float* bias, float* c,
                       int64_t columns) {
  // Copies, because the compiler reads the fields of `p` again after each store.
  const int64_t c_row = p.c_row;
  const bool accumulate = p.accumulate, relu = p.relu;
  const auto store_all = [&](auto finish) {
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        float* target = c + r * c_row + v * kWidth;
        store<kWidth>(target, finish(sum[r][v], target, v));
      }
    }
  };
  if (columns == kVectors * kWidth) {
    // Of the products with a small depth, as of Winograd's points, the last step is a large part.
    if (!accumulate && !bias && !relu) return store_all([](Floats<kWidth> value, const float*, int) { return value; });
    if (!bias && !relu)
      return store_all([](Floats<kWidth> value, const float* target, int) { return value + load<kWidth>(target); });
    return store_all([&](Floats<kWidth> value, const float* target, int v) {
      if (accumulate) value += load<kWidth>(target);
      if (bias) value += load<kWidth>(bias + v * kWidth);
      return relu ? (value < 0.0f ? Floats<kWidth>{} : value) : value;
    });
  }
  // Here too, use only constants as indices of `sum`. Otherwise the compiler would keep the sums in memory.
  float rest[kRows][kVectors * kWidth];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store<kWidth>(rest[r] + v * kWidth, sum[r][v]);
  }
#pragma GCC unroll 1
  for (int r = 0; r < kRows; ++r) {
    float* target = c + r * c_row;
    for (int64_t k = 0; k < columns; ++k) {
      float value = rest[r][k] + (accumulate ? target[k] : 0.0f) + (bias ? bias[k] : 0.0f);
      target[k] = relu && value < 0.0f ? 0.0f : value;
    }
  }
}

/// Multiplies `tiles` tiles, one below the other.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
void multiply_tiles(const Product& p, int64_t tiles, const float* a, const float* b, const float* bias, float* c,
                    int64_t columns) {
  for (; tiles > 0; --tiles) {
    Floats<kWidth> sum[kRows][kVectors];
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Floats<kWidth>{};
    }
    accumulate_tile<kWidth, kRows, kVectors, kUnitDepth>(p, a, b, sum);
    store_tile<kWidth, kRows, kVectors>(p, sum, bias, c, columns);
    a += kRows * p.a_row;
    c += kRows * p.c_row;
  }
}

/// `multiply_tiles` for a height that is known at run time and at most kRows.
template <int kWidth, int kRows, int kVectors, bool kUnitDepth>
void multiply_height(const Product& p, int64_t height, int64_t tiles, const float* a, const float* b, const float* bias,
                     float* c, int64_t columns) {
  if constexpr (kRows > 1) {
    if (height < kRows)
      return multiply_height<kWidth, kRows - 1, kVectors, kUnitDepth>(p, height, tiles, a, b, bias, c, columns);
  }
  multiply_tiles<kWidth, kRows, kVectors, kUnitDepth>(p, tiles, a, b, bias, c, columns);
}

/// One panel of C, kVectors vectors wide. `columns` of its columns are inside C.
template <int kWidth, int kVectors, bool kUnitDepth>
void multiply_panel(const Product& p, const float* b, const float* bias, float* c, int64_t columns) {
  constexpr int kMax = kMaxRows<kWidth, kVectors>;
  // Use heights that differ by at most one. A last tile of one or two rows would leave the multipliers idle.
  const int64_t tiles = (p.rows + kMax - 1) / kMax;
  const int64_t height = p.rows / tiles, higher = p.rows % tiles, row = higher * (height + 1);
  if (higher > 0) multiply_height<kWidth, kMax, kVectors, kUnitDepth>(p, height + 1, higher, p.a, b, bias, c, columns);
  multiply_height<kWidth, kMax, kVectors, kUnitDepth>(p, height, tiles - higher, p.a + row * p.a_row, b, bias,
                                                      c + row * p.c_row, columns);
}

template <int kWidth, bool kUnitDepth>
void multiply_panels(const Product& p) {
  constexpr int64_t kPanel = 2 * kWidth;
  constexpr int kTail = kTailWidth<kWidth>;
  for (int64_t first = 0; first < p.columns; first += kPanel) {
    const float* b = p.b + first / kPanel * p.b_panel;
    const float* bias = p.bias ? p.bias + first : nullptr;
    float* c = p.c + first;
    int64_t columns = p.columns - first < kPanel ? p.columns - first : kPanel;
    if (columns > kWidth + (kTail < kWidth ? kTail : 0)) {
      multiply_panel<kWidth, 2, kUnitDepth>(p, b, bias, c, columns);
      continue;
    }
    if (columns > kTail) {
      const int64_t whole = columns < kWidth ? columns : kWidth;
      multiply_panel<kWidth, 1, kUnitDepth>(p, b, bias, c, whole);
      columns -= whole;
      b += whole;
      c += whole;
      if (bias) bias += whole;
    }
    if (columns > 0) multiply_panel<kTail, 1, kUnitDepth>(p, b, bias, c, columns);
  }
}

template <int kWidth>
void multiply(const Product& p) {
  if (p.a_depth == 1)
    multiply_panels<kWidth, true>(p);
  else
    multiply_panels<kWidth, false>(p);
}

// A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", 2015, eq. 8: the m x m outputs of an r x r
// correlation on a patch d of (m + r - 1)² pixels are Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A. Each axis has m + r - 1 evaluation
// points, in this order: 0, 1, -1, 2, -2, then 1/2 and -1/2 if there are eight, then ∞. Bᵀ depends on the points only.
// A and G are the powers of the points, cut to m and r. G is divided by the points' Lagrange denominators. Each struct
// applies one of these matrices to a column.

/// Powers of the points 1, 2 and 1/2. Each comes with its negative.
constexpr float kPowers[3][5] = {{1, 1, 1, 1, 1}, {1, 2, 4, 8, 16}, {1, 1.0f / 2, 1.0f / 4, 1.0f / 8, 1.0f / 16}};

/// 1 / Lagrange denominator of 0, and of the pairs ±1, ±2, ±1/2. That of ∞ is 1.
template <int kPoints>
struct Lagrange;
template <>
struct Lagrange<6> {
  static constexpr float kZero = 1.0f / 4, kPairs[] = {-1.0f / 6, 1.0f / 24};
};
template <>
struct Lagrange<8> {
  static constexpr float kZero = -1, kPairs[] = {-2.0f / 9, 1.0f / 90, 32.0f / 45};
};

/// Bᵀ
template <int kPoints>
struct PatchTransform;

template <>
struct PatchTransform<6> {
  static constexpr int kIn = 6, kOut = 6;
  template <class V>
  static void apply(const V (&x)[kIn], V (&y)[kOut]) {
    const V even = x[4] - 4.0f * x[2], odd = x[3] - 4.0f * x[1];
    const V even2 = x[4] - x[2], odd2 = 2.0f * (x[3] - x[1]);
    y[0] = 4.0f * x[0] - 5.0f * x[2] + x[4];
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = even2 + odd2;
    y[4] = even2 - odd2;
    y[5] = 4.0f * x[1] - 5.0f * x[3] + x[5];
  }
};

template <>
struct PatchTransform<8> {
  static constexpr int kIn = 8, kOut = 8;
  template <class V>
  static void apply(const V (&x)[kIn], V (&y)[kOut]) {
    const V even = x[2] + x[6] - 4.25f * x[4], odd = x[1] + x[5] - 4.25f * x[3];
    const V even2 = x[6] + 0.25f * x[2] - 1.25f * x[4], odd2 = 2.0f * x[5] + 0.5f * x[1] - 2.5f * x[3];
    const V even_half = x[6] + 4.0f * x[2] - 5.0f * x[4], odd_half = 0.5f * x[5] + 2.0f * x[1] - 2.5f * x[3];
    y[0] = x[6] - x[0] + 5.25f * (x[2] - x[4]);
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = even2 + odd2;
    y[4] = even2 - odd2;
    y[5] = even_half + odd_half;
    y[6] = even_half - odd_half;
    y[7] = x[7] - x[1] + 5.25f * (x[3] - x[5]);
  }
};

/// G for kTaps taps
template <int kPoints, int kTaps>
struct FilterTransform {
  static constexpr int kIn = kTaps, kOut = kPoints;
  template <class V>
  static void apply(const V (&x)[kIn], V (&y)[kOut]) {
    y[0] = Lagrange<kPoints>::kZero * x[0];
#pragma GCC unroll 3
    for (int pair = 0; pair < kPoints / 2 - 1; ++pair) {
      V even = x[0], odd = kPowers[pair][1] * x[1];
#pragma GCC unroll 5
      for (int j = 2; j < kTaps; ++j) (j % 2 == 0 ? even : odd) += kPowers[pair][j] * x[j];
      y[2 * pair + 1] = Lagrange<kPoints>::kPairs[pair] * (even + odd);
      y[2 * pair + 2] = Lagrange<kPoints>::kPairs[pair] * (even - odd);
    }
    y[kPoints - 1] = x[kTaps - 1];
  }
};

/// Aᵀ for kOutputs outputs
template <int kPoints, int kOutputs>
struct OutputTransform {
  static constexpr int kIn = kPoints, kOut = kOutputs;
  template <class V>
  static void apply(const V (&x)[kIn], V (&y)[kOut]) {
    V sum[kPoints / 2 - 1], difference[kPoints / 2 - 1];
#pragma GCC unroll 3
    for (int pair = 0; pair < kPoints / 2 - 1; ++pair) {
      sum[pair] = x[2 * pair + 1] + x[2 * pair + 2];
      difference[pair] = x[2 * pair + 1] - x[2 * pair + 2];
    }
#pragma GCC unroll 5
    for (int j = 0; j < kOutputs; ++j) {
      y[j] = j == 0 ? x[0] + sum[0] : j % 2 == 0 ? sum[0] : difference[0];
#pragma GCC unroll 3
      for (int pair = 1; pair < kPoints / 2 - 1; ++pair)
        y[j] += kPowers[pair][j] * (j % 2 == 0 ? sum[pair] : difference[pair]);
    }
    y[kOutputs - 1] += x[kPoints - 1];
  }
};

/// Channels c to c + kWidth of `to_points`.
template <int kWidth, class Transform>
void vector_to_points(const float* const* pixels, int64_t c, float* points, int64_t stride) {
  constexpr int kIn = Transform::kIn, kPoints = Transform::kOut;
  Floats<kWidth> half[kPoints][kIn];
#pragma GCC unroll 8
  for (int j = 0; j < kIn; ++j) {
    Floats<kWidth> x[kIn], y[kPoints];
#pragma GCC unroll 8
    for (int i = 0; i < kIn; ++i) x[i] = load<kWidth>(pixels[i * kIn + j] + c);
    Transform::apply(x, y);
#pragma GCC unroll 8
    for (int i = 0; i < kPoints; ++i) half[i][j] = y[i];
  }
  float* target = points + c;
#pragma GCC unroll 8
  for (int i = 0; i < kPoints; ++i) {
    Floats<kWidth> y[kPoints];
    Transform::apply(half[i], y);
#pragma GCC unroll 8
    for (int j = 0; j < kPoints; ++j) store<kWidth>(target + (i * kPoints + j) * stride, y[j]);
  }
}

/// Transforms a square of pixels into the points, a vector of channels at a time. Pixel (i, j) of channel 0 is at
/// pixels[i·kIn + j] and must be readable in whole vectors. Point e of channel c goes to points[e·stride + c].
template <int kWidth, class Transform>
void to_points(const float* const* pixels, int64_t channels, float* points, int64_t stride) {
  constexpr int kTail = kTailWidth<kWidth>;
  int64_t c = 0;
  for (; channels - c > kTail; c += kWidth) vector_to_points<kWidth, Transform>(pixels, c, points, stride);
  if (c < channels) vector_to_points<kTail, Transform>(pixels, c, points, stride);
}

/// Channels c to c + kWidth of `from_points`, or to `channels` if that is less.
template <int kWidth, class Transform>
void vector_from_points(const float* points, int64_t stride, int64_t c, int64_t channels, const float* bias, bool relu,
                        float* const* pixels) {
  constexpr int kOut = Transform::kOut, kPoints = Transform::kIn;
  Floats<kWidth> half[kOut][kPoints];
  const float* source = points + c;
#pragma GCC unroll 8
  for (int j = 0; j < kPoints; ++j) {
    Floats<kWidth> x[kPoints], y[kOut];
#pragma GCC unroll 8
    for (int i = 0; i < kPoints; ++i) x[i] = load<kWidth>(source + (i * kPoints + j) * stride);
    Transform::apply(x, y);
#pragma GCC unroll 8
    for (int i = 0; i < kOut; ++i) half[i][j] = y[i];
  }
  const Floats<kWidth> shift = bias ? load<kWidth>(bias + c) : Floats<kWidth>{};
  const bool whole = channels - c >= kWidth;
  float rest[kOut * kOut * kWidth];
#pragma GCC unroll 8
  for (int i = 0; i < kOut; ++i) {
    Floats<kWidth> y[kOut];
    Transform::apply(half[i], y);
#pragma GCC unroll 8
    for (int j = 0; j < kOut; ++j) {
      Floats<kWidth> value = y[j] + shift;
      if (relu) value = value < 0.0f ? Floats<kWidth>{} : value;
      store<kWidth>(whole ? pixels[i * kOut + j] + c : rest + (i * kOut + j) * kWidth, value);
    }
  }
  if (whole) return;
#pragma GCC unroll 1
  for (int i = 0; i < kOut * kOut; ++i) {
    for (int64_t k = 0; k < channels - c; ++k) pixels[i][c + k] = rest[i * kWidth + k];
  }
}

/// The inverse of `to_points`: pixel (i, j) = the transform of the points, plus bias [channels] if it is not null, then
/// max(·, 0) if `relu`. Points and bias must be readable in whole vectors. Writes exactly `channels` floats to each
/// pixel.
template <int kWidth, class Transform>
void from_points(const float* points, int64_t stride, int64_t channels, const float* bias, bool relu,
                 float* const* pixels) {
  constexpr int kTail = kTailWidth<kWidth>;
  int64_t c = 0;
  for (; channels - c > kTail; c += kWidth) {
    vector_from_points<kWidth, Transform>(points, stride, c, channels, bias, relu, pixels);
  }
  if (c < channels) vector_from_points<kTail, Transform>(points, stride, c, channels, bias, relu, pixels);
}

template <int kWidth, int kOutputs, int kTaps>
constexpr WinogradTransforms make_transforms() {
  constexpr int kPoints = kOutputs + kTaps - 1;  // on each axis
  return {.outputs = kOutputs,
          .taps = kTaps,
          .side = kPoints,
          .patch = to_points<kWidth, PatchTransform<kPoints>>,
          .filter = to_points<kWidth, FilterTransform<kPoints, kTaps>>,
          .gradient = to_points<kWidth, FilterTransform<kPoints, kOutputs>>,
          .output = from_points<kWidth, OutputTransform<kPoints, kOutputs>>,
          .weights = from_points<kWidth, OutputTransform<kPoints, kTaps>>};
}

/// Channels c to c + kVectors·kWidth of a place of `depthwise_row`, whose taps along the row are `taps` to `end`.
template <int kWidth, int kVectors>
inline void depthwise_place(const DepthwiseRow& p, const Tap* taps, const Tap* end, int64_t c, float* y) {
  Floats<kWidth> sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = p.bias ? load<kWidth>(p.bias + c + v * kWidth) : Floats<kWidth>{};
  for (const Tap* row = p.taps; row != p.taps_end; ++row) {
    for (const Tap* tap = taps; tap != end; ++tap) {
      const float* in = p.source + row->source * p.source_row + tap->source * p.channels + c;
      const float* w = p.weights + (row->kernel * p.window_w + tap->kernel) * p.channels + c;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] += load<kWidth>(in + v * kWidth) * load<kWidth>(w + v * kWidth);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    if (p.relu) sum[v] = sum[v] < 0.0f ? Floats<kWidth>{} : sum[v];
    store<kWidth>(y + c + v * kWidth, sum[v]);
  }
}

// A strip of channels at a time, so that its weights and the pixels that neighbours share stay in the first cache.
template <int kWidth>
void depthwise_row(const DepthwiseRow& p) {
  constexpr int64_t kStrip = 256;
  for (int64_t first = 0; first < p.channels; first += kStrip) {
    const int64_t last = p.channels - first < kStrip ? p.channels : first + kStrip;
    const Tap* taps = p.columns;
    for (int64_t j = 0; j < p.width; ++j) {
      const Tap* end = p.columns + p.column_ends[j];
      float* y = p.y + j * p.channels;
      int64_t c = first;
      for (; c + 4 * kWidth <= last; c += 4 * kWidth) depthwise_place<kWidth, 4>(p, taps, end, c, y);
      for (; c + kWidth <= last; c += kWidth) depthwise_place<kWidth, 1>(p, taps, end, c, y);
      for (; c < last; ++c) depthwise_place<1, 1>(p, taps, end, c, y);
      taps = end;
    }
  }
}

/// Channels c to c + kVectors·kWidth of `depthwise_weights`.
template <int kWidth, int kVectors>
void depthwise_sums(const float* x, int64_t x_step, const float* dy, int64_t count, int64_t channels, int64_t c,
                    float* sums) {
  Floats<kWidth> sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = load<kWidth>(sums + c + v * kWidth);
  for (int64_t o = 0; o < count; ++o) {
    const float *in = x + o * x_step + c, *gradient = dy + o * channels + c;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += load<kWidth>(in + v * kWidth) * load<kWidth>(gradient + v * kWidth);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store<kWidth>(sums + c + v * kWidth, sum[v]);
}

template <int kWidth>
void depthwise_weights(const float* x, int64_t x_step, const float* dy, int64_t count, int64_t channels, float* sums) {
  int64_t c = 0;
  for (; c + 4 * kWidth <= channels; c += 4 * kWidth)
    depthwise_sums<kWidth, 4>(x, x_step, dy, count, channels, c, sums);
  for (; c + kWidth <= channels; c += kWidth) depthwise_sums<kWidth, 1>(x, x_step, dy, count, channels, c, sums);
  for (; c < channels; ++c) depthwise_sums<1, 1>(x, x_step, dy, count, channels, c, sums);
}

template <int kWidth>
constexpr Kernels make_kernels(const CodecLoops* codec) {
  return {.width = kWidth,
          .tail = kTailWidth<kWidth>,
          .multiply = multiply<kWidth>,
          .winograd_3x3 = make_transforms<kWidth, 4, 3>(),
          .winograd_5x5 = make_transforms<kWidth, 4, 5>(),
          .depthwise_row = depthwise_row<kWidth>,
          .depthwise_weights = depthwise_weights<kWidth>,
          .codec = codec};
}

}  // namespace
}  // namespace tern::cpu::simd
