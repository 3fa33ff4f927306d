#pragma once

#include "tern/kernels/cpu/simd/vector.h"

namespace tern::cpu::simd {
namespace {

// A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", 2015, eq. 8: the m x m outputs of an r x r
// correlation on a patch d of (m + r - 1)² are Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A. The six evaluation points 0, 1, -1, 2, -2, ∞
// serve every pair with m + r - 1 = 6: Bᵀ is that of F(4, 3), A and G are the powers of the points, cut to m and r,
// with the points' Lagrange denominators 4, -6, -6, 24, 24, 1 in G. Each struct is one of them, applied to a column.

constexpr int kPoints = 6;

/// Bᵀ
struct PatchTransform {
  static constexpr int kIn = kPoints, kOut = kPoints;
  template <class Vector>
  static void apply(const Vector (&x)[kIn], Vector (&y)[kOut]) {
    const Vector even = x[4] - 4.0f * x[2], odd = x[3] - 4.0f * x[1];
    const Vector even2 = x[4] - x[2], odd2 = 2.0f * (x[3] - x[1]);
    y[0] = 4.0f * x[0] - 5.0f * x[2] + x[4];
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = even2 + odd2;
    y[4] = even2 - odd2;
    y[5] = 4.0f * x[1] - 5.0f * x[3] + x[5];
  }
};

/// G for kTaps taps
template <int kTaps>
struct FilterTransform {
  static constexpr int kIn = kTaps, kOut = kPoints;
  template <class Vector>
  static void apply(const Vector (&x)[kIn], Vector (&y)[kOut]) {
    Vector even = x[0], odd = x[1];
    Vector even2 = x[0], odd2 = 2.0f * x[1];
#pragma GCC unroll 6
    for (int j = 2; j < kTaps; ++j) {
      const float power = static_cast<float>(1 << j);
      (j % 2 == 0 ? even : odd) += x[j];
      (j % 2 == 0 ? even2 : odd2) += power * x[j];
    }
    y[0] = 0.25f * x[0];
    y[1] = (-1.0f / 6) * (even + odd);
    y[2] = (-1.0f / 6) * (even - odd);
    y[3] = (1.0f / 24) * (even2 + odd2);
    y[4] = (1.0f / 24) * (even2 - odd2);
    y[5] = x[kTaps - 1];
  }
};

/// Aᵀ for kOutputs outputs
template <int kOutputs>
struct OutputTransform {
  static constexpr int kIn = kPoints, kOut = kOutputs;
  template <class Vector>
  static void apply(const Vector (&x)[kIn], Vector (&y)[kOut]) {
    const Vector sum = x[1] + x[2], difference = x[1] - x[2];
    const Vector sum2 = x[3] + x[4], difference2 = x[3] - x[4];
    y[0] = x[0] + sum + sum2;
#pragma GCC unroll 6
    for (int j = 1; j < kOutputs; ++j) {
      const float power = static_cast<float>(1 << j);
      y[j] = j % 2 == 0 ? sum + power * sum2 : difference + power * difference2;
    }
    y[kOutputs - 1] += x[5];
  }
};

/// Channels c to c + kWidth of `to_points`.
template <int kWidth, class Transform>
void vector_to_points(const float* const* pixels, int64_t c, float* points, int64_t stride) {
  constexpr int kIn = Transform::kIn;
  Vector<kWidth> half[kPoints][kIn];
#pragma GCC unroll 6
  for (int j = 0; j < kIn; ++j) {
    Vector<kWidth> x[kIn], y[kPoints];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) x[i] = load<kWidth>(pixels[i * kIn + j] + c);
    Transform::apply(x, y);
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) half[i][j] = y[i];
  }
  float* target = points + c;
#pragma GCC unroll 6
  for (int i = 0; i < kPoints; ++i) {
    Vector<kWidth> y[kPoints];
    Transform::apply(half[i], y);
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) store<kWidth>(target + (i * kPoints + j) * stride, y[j]);
  }
}

/// Transforms a square of pixels into the 36 points, a vector of channels at a time. Pixel (i, j) of channel 0 is at
/// pixels[i·kIn + j], and whole vectors can be read there; point e of channel c goes to points[e·stride + c].
template <int kWidth, class Transform>
void to_points(const float* const* pixels, int64_t channels, float* points, int64_t stride) {
  constexpr int kTail = kTailWidth<kWidth>;
  int64_t c = 0;
  for (; channels - c > kTail; c += kWidth) vector_to_points<kWidth, Transform>(pixels, c, points, stride);
  if (c < channels) vector_to_points<kTail, Transform>(pixels, c, points, stride);
}

/// Channels c to c + kWidth of `from_points`, as far as there are any.
template <int kWidth, class Transform>
void vector_from_points(const float* points, int64_t stride, int64_t c, int64_t channels, const float* bias, bool relu,
                        float* const* pixels) {
  constexpr int kOut = Transform::kOut;
  Vector<kWidth> half[kOut][kPoints];
  const float* source = points + c;
#pragma GCC unroll 6
  for (int j = 0; j < kPoints; ++j) {
    Vector<kWidth> x[kPoints], y[kOut];
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) x[i] = load<kWidth>(source + (i * kPoints + j) * stride);
    Transform::apply(x, y);
#pragma GCC unroll 6
    for (int i = 0; i < kOut; ++i) half[i][j] = y[i];
  }
  const Vector<kWidth> shift = bias ? load<kWidth>(bias + c) : Vector<kWidth>{};
  const bool whole = channels - c >= kWidth;
  float rest[kOut * kOut * kWidth];
#pragma GCC unroll 6
  for (int i = 0; i < kOut; ++i) {
    Vector<kWidth> y[kOut];
    Transform::apply(half[i], y);
#pragma GCC unroll 6
    for (int j = 0; j < kOut; ++j) {
      Vector<kWidth> value = y[j] + shift;
      if (relu) value = value < 0.0f ? Vector<kWidth>{} : value;
      store<kWidth>(whole ? pixels[i * kOut + j] + c : rest + (i * kOut + j) * kWidth, value);
    }
  }
  if (whole) return;
#pragma GCC unroll 1
  for (int i = 0; i < kOut * kOut; ++i) {
    for (int64_t k = 0; k < channels - c; ++k) pixels[i][c + k] = rest[i * kWidth + k];
  }
}

/// The way back: pixel (i, j) = the transform of the points, plus bias [channels] where not null, then max(·, 0) if
/// `relu`. Points and bias can be read in whole vectors; exactly `channels` floats are written to each pixel.
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

}  // namespace
}  // namespace tern::cpu::simd
