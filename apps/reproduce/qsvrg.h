#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/dist/codec/codec.h"

namespace tern::reproduce {

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

/// What QSVRG leaves open.
struct QsvrgOptions {
  int64_t processors = 4;      ///< K
  std::string codec = "none";  ///< of the updates: the paper's is qsgd with s = √n levels; none makes it SVRG
  double rate = 0;             ///< η, O(1/L)
  int64_t steps = 0;           ///< T of an epoch, O(κ)
  uint64_t seed = 1;
};

/// Quantized variance-reduced SGD (Alistarh et al., 2017, section 3.3), whose messages are those of tern's codecs: at
/// an epoch's start every processor's share of ∇f(y) in f32, then T updates of each. Used by one thread.
class Qsvrg {
 public:
  using Vector = LinearProblem::Vector;

  /// From y = `start`; `problem` outlives it.
  Qsvrg(const LinearProblem& problem, Vector start, const QsvrgOptions& options);
  /// One epoch. Returns the bits that a processor broadcast in it, the mean of all.
  double run_epoch();
  const Vector& y() const { return y_; }

 private:
  Vector full_gradient();
  void add_message(GradientCodec& codec, const GradientTag& tag, const Vector& gradient, Tensor& sum);

  const LinearProblem& problem_;
  QsvrgOptions options_;
  std::unique_ptr<GradientCodec> floats_, codec_;
  Vector y_;
  uint32_t step_ = 0;  ///< since the first epoch
  double bits_ = 0;    ///< of all processors in this epoch
};

/// Theorem 3.6's (F + 2.8n)(T + 1) + Fn bits of a processor in an epoch, of floats of F = 32 bits.
double qsvrg_bits_bound(double n, double steps);

}  // namespace tern::reproduce
