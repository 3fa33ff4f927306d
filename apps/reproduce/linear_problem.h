#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tern {

/// A linear model's examples: unit vectors a_i, rows of `features`, and what each is to give.
struct LinearExamples {
  int64_t dimensions = 0;
  std::vector<double> features;  ///< [examples, dimensions], row-major
  std::vector<double> targets;
};
/// Directions of a Gaussian; targets are those of a linear model that gives 0 ± 1, and noise of a tenth.
LinearExamples drawn_examples(int64_t examples, int64_t dimensions, uint64_t seed);
/// The pixels of drawn digits; targets are ±1 for odd and even ones.
LinearExamples digit_examples(int64_t examples, uint64_t seed);

enum class LinearLoss : uint8_t {
  squared,   ///< φ(z, b) = ½ (z − b)²: ridge regression
  logistic,  ///< φ(z, b) = log(1 + e^(−bz))
};

/// f(x) = (1/m) Σ f_i(x) with f_i(x) = φ(a_i·x, b_i) + ℓ/2 ‖x‖², ‖a_i‖ = 1: each f_i is convex and L-smooth with
/// L = max φ'' + ℓ, f is ℓ-strongly convex. Immutable.
class LinearProblem {
 public:
  using Vector = std::vector<double>;

  /// ℓ is what makes the condition number L/ℓ = `condition`, more than 1.
  LinearProblem(LinearLoss loss, LinearExamples examples, double condition);

  int64_t dimensions() const { return examples_.dimensions; }
  int64_t functions() const { return static_cast<int64_t>(examples_.targets.size()); }
  double smoothness() const { return convexity_ * condition_; }  ///< L
  double condition() const { return condition_; }                ///< κ

  double value(std::span<const double> x) const;
  /// sum += weight · ∇f_i(x).
  void add_gradient(int64_t i, std::span<const double> x, double weight, std::span<double> sum) const;
  /// (1/m) Σ ∇f_i(x) over i in [begin, end).
  Vector gradient(std::span<const double> x, int64_t begin, int64_t end) const;
  /// x*, up to rounding.
  Vector minimizer() const;

 private:
  std::span<const double> feature(int64_t i) const;

  LinearLoss loss_;
  LinearExamples examples_;
  double condition_, convexity_;
};

}  // namespace tern
