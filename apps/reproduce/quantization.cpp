#include "tern/apps/reproduce/quantization.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/dist/codec/entropy_coders.h"

namespace tern::reproduce {
namespace {

constexpr Distribution kAll[] = {Distribution::gauss, Distribution::uniform, Distribution::laplace,
                                 Distribution::constant};
constexpr const char* kNames[] = {"Gauss", "uniform", "Laplace", "constant"};

float draw(Distribution distribution, const RandomStream& stream, uint64_t element) {
  const float centred = 2 * stream.uniform(element) - 1;
  switch (distribution) {
    case Distribution::gauss: return stream.normal(element);
    case Distribution::uniform: return centred;
    case Distribution::laplace: return std::copysign(std::log1p(-std::min(std::abs(centred), 1 - 0x1p-24f)), centred);
    case Distribution::constant: return std::copysign(1.0f, centred);
  }
  return 0;
}

/// The deviation of one draw from v.
struct Deviation {
  double along = 0, squares = 0, nonzeros = 0;
};

Deviation deviation(std::span<const float> drawn, std::span<const float> v) {
  Deviation sum;
  for (size_t i = 0; i < v.size(); ++i) {
    const double error = double{drawn[i]} - v[i];
    sum.along += double{drawn[i]} * v[i];
    sum.squares += error * error;
    sum.nonzeros += drawn[i] != 0;
  }
  return sum;
}

double squared_norm(std::span<const float> v) {
  double sum = 0;
  for (const float x : v) sum += double{x} * x;
  return sum;
}

double norm_of(std::span<const float> bucket, bool by_maximum) {
  if (!by_maximum) return std::sqrt(squared_norm(bucket));
  double largest = 0;
  for (const float x : bucket) largest = std::max(largest, std::abs(double{x}));
  return largest;
}

}  // namespace

std::span<const Distribution> distributions() { return kAll; }

const char* to_string(Distribution distribution) { return kNames[static_cast<size_t>(distribution)]; }

Tensor drawn_vector(Distribution distribution, int64_t n, uint64_t seed) {
  const RandomStream stream({.seed = seed, .purpose = Purpose::initialize});
  Tensor vector = Tensor::empty({n});
  uint64_t element = 0;
  for (float& value : vector.span<float>()) value = draw(distribution, stream, element++);
  return vector;
}

QuantizationSample sample_quantization(GradientCodec& codec, const Tensor& v, int64_t draws) {
  const double square = squared_norm(v.span<float>());
  std::vector<double> along, variance, nonzeros, mean(static_cast<size_t>(v.numel()));
  for (int64_t draw = 0; draw < draws; ++draw) {
    const GradientTag tag = {"v", {.seed = 1, .purpose = Purpose::codec, .step = static_cast<uint32_t>(draw)}};
    std::vector<std::byte> message;
    codec.encode(tag, v, message);
    Tensor decoded = Tensor::zeros(v.shape());
    codec.decode_add(tag, message, decoded);
    const Deviation found = deviation(decoded.span<float>(), v.span<float>());
    along.push_back(found.along / square);
    variance.push_back(found.squares / square);
    nonzeros.push_back(found.nonzeros);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += decoded.span<float>()[i] / static_cast<double>(draws);
  }
  QuantizationSample sample = {summarize(along), summarize(variance), summarize(nonzeros)};
  for (size_t i = 0; i < mean.size(); ++i) {
    const double error = mean[i] - v.span<float>()[i];
    sample.mean_error += error * error;
  }
  const double expected = sample.variance.mean * square / static_cast<double>(draws);
  sample.mean_error = expected > 0 ? sample.mean_error / expected : 0;
  return sample;
}

ExpectedQuantization expected_quantization(const QuantizationSettings& settings, const Tensor& v) {
  const auto values = v.span<float>();
  const size_t length = settings.bucket == 0 ? values.size() : static_cast<size_t>(settings.bucket);
  ExpectedQuantization expected;
  for (size_t first = 0; first < values.size(); first += length) {
    const auto bucket = values.subspan(first, std::min(length, values.size() - first));
    const double unit = norm_of(bucket, settings.by_maximum) / static_cast<double>(settings.levels);
    for (const float x : bucket) {
      const double level = std::abs(double{x}) / unit, fraction = level - std::floor(level);
      expected.variance += unit * unit * fraction * (1 - fraction);
      expected.nonzeros += std::min(1.0, level);
    }
  }
  expected.variance /= squared_norm(values);
  return expected;
}

double variance_bound(double n, double s) { return std::min(n / (s * s), std::sqrt(n) / s); }
double nonzeros_bound(double n, double s) { return s * (s + std::sqrt(n)); }

std::vector<int32_t> drawn_levels(const GradientCodec& codec, const Tensor& v, uint32_t step) {
  const ScaledCodec* scaled = codec.scaled();
  check(scaled != nullptr, "codec ", codec.spec(), " has no levels");
  const GradientTag tag = {"v", {.seed = 1, .purpose = Purpose::codec, .step = step}};
  const Tensor scalers = scaled->scalers(tag, v);
  std::vector<std::byte> codes;
  scaled->append_codes(tag, v, scalers, codes);
  Tensor levels = Tensor::zeros(v.shape());
  scaled->add_codes(codes, Tensor::full(scalers.shape(), 1), levels);
  return {levels.span<float>().begin(), levels.span<float>().end()};
}

EliasBits elias_bits(std::span<const int32_t> levels) {
  EliasBits bits;
  uint64_t nonzeros = 0, distance = 0;
  for (const int32_t level : levels) {
    const auto size = static_cast<uint64_t>(std::abs(level));
    bits.dense += omega_bits(size + 1) + (size != 0);
    ++distance;
    if (size == 0) continue;
    bits.sparse += omega_bits(distance) + 1 + omega_bits(size);
    distance = 0;
    ++nonzeros;
  }
  bits.sparse += omega_bits(nonzeros + 1);
  return bits;
}

double theorem_bits(double n, double s) {
  const double nonzeros = nonzeros_bound(n, s);
  return (3 + 1.5 * std::log2(2 * (s * s + n) / nonzeros)) * nonzeros + 32;
}

double corollary_bits(double n) { return 2.8 * n + 32; }

}  // namespace tern::reproduce
