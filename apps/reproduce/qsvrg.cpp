#include "tern/apps/reproduce/qsvrg.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/data/generated.h"

namespace tern::reproduce {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The derivative of φ with respect to z.
double slope(LinearLoss loss, double z, double target) {
  return loss == LinearLoss::squared ? z - target : -target / (1 + std::exp(target * z));
}

/// The maximum of φ''.
double curvature(LinearLoss loss) { return loss == LinearLoss::squared ? 1 : 0.25; }

void normalize(std::span<double> a) {
  const double length = std::sqrt(dot(a, a));
  for (double& value : a) value /= length;
}

}  // namespace

LinearExamples drawn_examples(int64_t examples, int64_t dimensions, uint64_t seed) {
  const RandomStream features({.seed = seed, .purpose = Purpose::initialize, .tensor = 0}),
      weights({.seed = seed, .purpose = Purpose::initialize, .tensor = 1}),
      noise({.seed = seed, .purpose = Purpose::initialize, .tensor = 2});
  LinearExamples drawn = {.dimensions = dimensions, .features = {}, .targets = {}};
  for (int64_t i = 0; i < examples * dimensions; ++i)
    drawn.features.push_back(features.normal(static_cast<uint64_t>(i)));
  for (int64_t i = 0; i < examples; ++i) {
    const std::span a(&drawn.features[static_cast<size_t>(i * dimensions)], static_cast<size_t>(dimensions));
    normalize(a);
    double target = 0.1 * noise.normal(static_cast<uint64_t>(i));
    for (size_t e = 0; e < a.size(); ++e) target += a[e] * weights.normal(e);
    drawn.targets.push_back(target);
  }
  return drawn;
}

LinearExamples digit_examples(int64_t examples, uint64_t seed) {
  constexpr size_t kPixels = kDigitSide * kDigitSide;
  LinearExamples drawn = {.dimensions = kPixels, .features = {}, .targets = {}};
  std::vector<uint8_t> pixels(kPixels);
  for (int64_t i = 0; i < examples; ++i) {
    const int64_t digit = draw_digit(seed, Split::train, i, pixels);
    drawn.targets.push_back(digit % 2 == 0 ? -1 : 1);
    drawn.features.insert(drawn.features.end(), pixels.begin(), pixels.end());
    normalize(std::span(drawn.features).last(kPixels));
  }
  return drawn;
}

LinearProblem::LinearProblem(LinearLoss loss, LinearExamples examples, double condition)
    : loss_(loss),
      examples_(std::move(examples)),
      condition_(condition),
      convexity_(curvature(loss) / (condition - 1)) {}

std::span<const double> LinearProblem::feature(int64_t i) const {
  const auto n = static_cast<size_t>(dimensions());
  return std::span(examples_.features).subspan(static_cast<size_t>(i) * n, n);
}

double LinearProblem::value(std::span<const double> x) const {
  double sum = 0;
  for (int64_t i = 0; i < functions(); ++i) {
    const double z = dot(feature(i), x), target = examples_.targets[static_cast<size_t>(i)];
    if (loss_ == LinearLoss::squared)
      sum += 0.5 * (z - target) * (z - target);
    else
      sum += std::max(0.0, -target * z) + std::log1p(std::exp(-std::abs(z)));  // log(1 + e^y) without overflow
  }
  return sum / static_cast<double>(functions()) + 0.5 * convexity_ * dot(x, x);
}

void LinearProblem::add_gradient(int64_t i, std::span<const double> x, double weight, std::span<double> sum) const {
  const auto a = feature(i);
  const double along = weight * slope(loss_, dot(a, x), examples_.targets[static_cast<size_t>(i)]);
  const double shrink = weight * convexity_;
  for (size_t e = 0; e < sum.size(); ++e) sum[e] += along * a[e] + shrink * x[e];
}

LinearProblem::Vector LinearProblem::gradient(std::span<const double> x, int64_t begin, int64_t end) const {
  Vector sum(x.size());
  for (int64_t i = begin; i < end; ++i) add_gradient(i, x, 1 / static_cast<double>(functions()), sum);
  return sum;
}

/// Nesterov's accelerated gradient descent. The error falls by a factor of e^(−1/√κ) per step, so 40 √κ steps leave
/// e^(−40).
LinearProblem::Vector LinearProblem::minimizer() const {
  const double root = std::sqrt(condition_), momentum = (root - 1) / (root + 1);
  const auto n = static_cast<size_t>(dimensions());
  Vector x(n), y(n);
  for (int step = 0; step < 40 * root; ++step) {
    const Vector gradient = this->gradient(y, 0, functions());
    for (size_t e = 0; e < n; ++e) {
      const double before = x[e];
      x[e] = y[e] - gradient[e] / smoothness();
      y[e] = x[e] + momentum * (x[e] - before);
    }
  }
  return x;
}

Qsvrg::Qsvrg(const LinearProblem& problem, Vector start, const QsvrgOptions& options)
    : problem_(problem),
      options_(options),
      floats_(make_codec("none")),
      codec_(make_codec(options.codec)),
      y_(std::move(start)) {}

/// The broadcast of one processor: encodes the gradient, counts its bits, and adds what its peers decode to `sum`.
void Qsvrg::add_message(GradientCodec& codec, const GradientTag& tag, const Vector& gradient, Tensor& sum) {
  std::vector<std::byte> message;
  codec.encode(tag, Tensor::from<double>(sum.shape(), gradient).to(DType::f32), message);
  codec.decode_add(tag, message, sum);
  bits_ += 8 * static_cast<double>(message.size());
}

/// ∇f(y) = Σ ∇h_i(y), with h_i = (1/m) Σ f_j over the functions f_j of processor i.
Qsvrg::Vector Qsvrg::full_gradient() {
  const int64_t m = problem_.functions(), processors = options_.processors;
  Tensor sum = Tensor::zeros({problem_.dimensions()});
  for (int64_t i = 0; i < processors; ++i)
    add_message(*floats_, {.name = "gradient", .key = {}},
                problem_.gradient(y_, i * m / processors, (i + 1) * m / processors), sum);
  return sum.to_vector<double>();
}

double Qsvrg::run_epoch() {
  const RandomStream choice({.seed = options_.seed, .purpose = Purpose::shuffle});
  const auto processors = static_cast<uint32_t>(options_.processors);
  bits_ = 0;
  const Vector full = full_gradient();
  Vector x = y_, mean(y_.size());
  for (int64_t t = 0; t < options_.steps; ++t, ++step_) {
    for (size_t e = 0; e < x.size(); ++e) mean[e] += x[e] / static_cast<double>(options_.steps);
    Tensor sum = Tensor::zeros({problem_.dimensions()});
    for (uint32_t i = 0; i < processors; ++i) {
      const int64_t j = choice.below(uint64_t{step_} * processors + i, static_cast<uint32_t>(problem_.functions()));
      Vector update = full;
      problem_.add_gradient(j, x, 1, update);
      problem_.add_gradient(j, y_, -1, update);
      const RandomKey key = {.seed = options_.seed, .purpose = Purpose::codec, .owner = i, .step = step_};
      add_message(*codec_, {.name = "update", .key = key}, update, sum);
    }
    for (size_t e = 0; e < x.size(); ++e) x[e] -= options_.rate * sum.data<float>()[e] / processors;
  }
  y_ = mean;
  return bits_ / processors;
}

double qsvrg_bits_bound(double n, double steps) { return (32 + 2.8 * n) * (steps + 1) + 32 * n; }

}  // namespace tern::reproduce
