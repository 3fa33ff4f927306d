#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tern::cpu {

/// exp(x) without branches, so that it vectorises. The relative error is below 2e-7. The result is 0 below -87.3,
/// infinity above 88.7 and NaN for NaN. exp(x) = 2^n · e^r with r = x - n·ln 2, |r| <= ln(2)/2. e^r is its Taylor
/// polynomial of degree 7.
inline float exponential(float x) {
  const float clamped = x < -88.0f ? -88.0f : x > 89.0f ? 89.0f : x;
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, which the lowest bits of the sum then hold
  const float sum = clamped * 1.44269504f + kRound, n = sum - kRound;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^n as a product of two powers: 2^128 is not a finite float, although e^88.7 is.
  const int32_t whole = std::bit_cast<int32_t>(sum) - std::bit_cast<int32_t>(kRound), half = whole >> 1;
  const auto power = [](int32_t e) { return std::bit_cast<float>((e + 127) << 23); };
  const float y = p * power(half) * power(whole - half);
  return x < -87.3f ? 0.0f : x > 88.72284f ? std::bit_cast<float>(0x7f800000) : y;
}

/// The distribution function of N(0, 1) at x, and its density at x.
struct Normal {
  float below, density;
};

/// Both values without branches, with an absolute error below 2e-7. erfc is from Abramowitz and Stegun, "Handbook of
/// mathematical functions", 7.1.26. Far below 0 there is no cancellation.
inline Normal normal_distribution(float x) {
  const float distance = x < 0.0f ? -x : x, power = exponential(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.3275911f * 0.707106781f * distance);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * power;
  return {x < 0.0f ? tail : 1.0f - tail, 0.398942280f * power};
}

/// log(x) for positive normal x, without branches. x = 2^e · m with m in [sqrt(1/2), sqrt(2)), and s = (m - 1)/(m + 1).
/// Then log m = 2·(s + s³/3 + s⁵/5 + ...). The absolute error is below 1e-7 · max(1, |log x|).
inline float logarithm(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t e = (bits - 0x3f3504f3) >> 23;  // the bits of sqrt(1/2)
  const float m = std::bit_cast<float>(bits - (e << 23));
  const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
  const float series = s + s * z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return 2.0f * series + static_cast<float>(e) * 0.693147181f;
}

/// log(x) for every x, as std::log: -infinity for 0, NaN for negative x. Without branches.
inline float logarithm_of_any(float x) {
  constexpr float kLeastNormal = 0x1p-126f, kUp = 0x1p24f, kInfinity = std::bit_cast<float>(0x7f800000);
  const bool inside = (x > 0.0f) & (x < kInfinity), subnormal = x < kLeastNormal;
  const float y = logarithm(!inside ? 1.0f : subnormal ? x * kUp : x) - (subnormal ? 24 * 0.693147181f : 0.0f);
  const float outside = x == 0.0f ? -kInfinity : x < 0.0f ? std::bit_cast<float>(0x7fc00000) : x;  // ∞ and NaN stay
  return inside ? y : outside;
}

/// log(1 + e) for e in [0, 1], without branches. The relative error is below 2e-7; NaN gives NaN. With s = e/(2 + e),
/// which is at most 1/3, it is 2·(s + s³/3 + s⁵/5 + ...).
inline float logarithm_of_one_plus(float e) {
  const float s = e / (2.0f + e), z = s * s;
  float p = 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  return 2.0f * (s + s * z * p);
}

}  // namespace tern::cpu
