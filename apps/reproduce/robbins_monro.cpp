#include "tern/apps/reproduce/robbins_monro.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace tern::reproduce {
namespace {

using Vector = LinearProblem::Vector;

double squared_distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

Tensor gradient_of(const LinearProblem& problem, int64_t example, const Vector& w) {
  Vector gradient(w.size());
  problem.add_gradient(example, w, 1, gradient);
  return Tensor::from({std::ssize(gradient)}, std::vector<float>(gradient.begin(), gradient.end()));
}

}  // namespace

std::vector<double> RobbinsMonro::distances(const std::vector<int64_t>& steps, const Vector& minimizer) const {
  const RandomStream random({.seed = seed, .purpose = Purpose::shuffle});
  const double convexity = problem.smoothness() / problem.condition();
  const auto functions = static_cast<uint64_t>(problem.functions());
  Vector w(minimizer.size());
  const double start = squared_distance(w, minimizer);
  std::vector<double> found;
  for (int64_t t = 0; found.size() < steps.size(); ++t) {
    if (t == steps[found.size()]) found.push_back(squared_distance(w, minimizer) / start);
    const auto example = static_cast<int64_t>(random.below(static_cast<uint64_t>(t), functions));
    const Tensor coded = code(gradient_of(problem, example, w), static_cast<uint32_t>(t));
    const double rate = 2 / (convexity * (static_cast<double>(t) + offset));
    for (size_t k = 0; k < w.size(); ++k) w[k] -= rate * coded.data<float>()[k];
  }
  return found;
}

std::vector<int64_t> rising_steps(int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t decade = 10; decade < last; decade *= 10)
    for (const int64_t step : {decade, 2 * decade, 5 * decade})
      if (step < last) steps.push_back(step);
  steps.push_back(last);
  return steps;
}

LemmaPoint lemma_point(const LinearProblem& problem, const CodedStep& code, const Vector& w, const Vector& minimizer,
                       int64_t draws) {
  LemmaPoint point = {.distance = squared_distance(w, minimizer)};
  const auto functions = static_cast<double>(problem.functions());
  std::vector<double> left(static_cast<size_t>(draws));
  uint32_t step = 0;
  for (int64_t i = 0; i < problem.functions(); ++i) {
    const Tensor g = gradient_of(problem, i, w);
    double largest = 0, absolute = 0;
    for (const float x : g.span<float>()) {
      largest = std::max(largest, std::abs(double{x}));
      absolute += std::abs(double{x});
    }
    point.right += largest * absolute / functions;
    for (double& sum : left) {
      // (h' − h) / γ² + 2 (w − w*)ᵀg / γ = ‖g̃‖² − 2 (w − w*)ᵀ(g̃ − g) / γ, here with γ = 1.
      const Tensor coded = code(g, step++);
      for (size_t k = 0; k < w.size(); ++k) {
        const double sent = coded.data<float>()[k];
        sum += (sent * sent - 2 * (w[k] - minimizer[k]) * (sent - double{g.data<float>()[k]})) / functions;
      }
    }
  }
  point.left = summarize(left);
  return point;
}

CodedStep coded_by(const std::string& codec, uint64_t seed) {
  return [coder = std::shared_ptr<GradientCodec>(make_codec(codec)), seed](const Tensor& g, uint32_t step) {
    const GradientTag tag = {"g", {.seed = seed, .purpose = Purpose::codec, .step = step}};
    std::vector<std::byte> message;
    coder->encode(tag, g, message);
    Tensor decoded = Tensor::zeros(g.shape());
    coder->decode_add(tag, message, decoded);
    return decoded;
  };
}

Tensor rounded_to_nearest(const Tensor& g, uint32_t /*step*/) {
  float largest = 0;
  for (const float x : g.span<float>()) largest = std::max(largest, std::abs(x));
  Tensor rounded = g.clone();
  for (float& x : rounded.span<float>()) x = std::abs(x) < largest / 2 ? 0 : std::copysign(largest, x);
  return rounded;
}

}  // namespace tern::reproduce
