#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/dist/codec/codec.h"

namespace tern::reproduce {

/// The examples of a linear model: unit vectors a_i in the rows of `features`, and their targets b_i.
struct LinearExamples {
  int64_t dimensions = 0;
  std::vector<double> features;  ///< [examples, dimensions], row-major
  std::vector<double> targets;
};
/// Random directions (normalized Gaussian vectors). Targets come from a random linear model with outputs of mean 0 and
/// variance 1, plus noise with a standard deviation of 0.1.
LinearExamples drawn_examples(int64_t examples, int64_t dimensions, uint64_t seed);
/// The pixels of generated digits, normalized; the target is 1 for odd digits and −1 for even ones.
LinearExamples digit_examples(int64_t examples, uint64_t seed);

enum class LinearLoss : uint8_t {
  squared,   ///< φ(z, b) = ½ (z − b)²: ridge regression
  logistic,  ///< φ(z, b) = log(1 + e^(−bz))
};

/// f(x) = (1/m) Σ f_i(x) with f_i(x) = φ(a_i·x, b_i) + ℓ/2 ‖x‖², ‖a_i‖ = 1. Each f_i is convex and L-smooth with L =
/// max φ'' + ℓ; f is ℓ-strongly convex. Immutable.
class LinearProblem {
 public:
  using Vector = std::vector<double>;

  /// Chooses ℓ so that the condition number L/ℓ is `condition`, which must be above 1.
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
  /// The minimizer x*, up to rounding.
  Vector minimizer() const;

 private:
  std::span<const double> feature(int64_t i) const;

  LinearLoss loss_;
  LinearExamples examples_;
  double condition_, convexity_;
};

/// The parameters that the paper leaves open.
struct QsvrgOptions {
  int64_t processors = 4;      ///< K
  std::string codec = "none";  ///< codec of the updates; the paper's is qsgd with s = √n levels; "none" gives SVRG
  double rate = 0;             ///< learning rate η, O(1/L)
  int64_t steps = 0;           ///< steps of an epoch T, O(κ)
  uint64_t seed = 1;
};

/// Quantized variance-reduced SGD (Alistarh et al., 2017, section 3.3) with the messages of tern's codecs. At the start
/// of an epoch, each processor sends its share of ∇f(y) in f32; then each sends T updates. One thread.
class Qsvrg {
 public:
  using Vector = LinearProblem::Vector;

  /// Starts at y = `start`. `problem` must outlive this.
  Qsvrg(const LinearProblem& problem, Vector start, const QsvrgOptions& options);
  /// Runs one epoch. Returns the bits that a processor broadcast in it, the mean over the processors.
  double run_epoch();
  const Vector& y() const { return y_; }

 private:
  Vector full_gradient();
  void add_message(GradientCodec& codec, const GradientTag& tag, const Vector& gradient, Tensor& sum);

  const LinearProblem& problem_;
  QsvrgOptions options_;
  std::unique_ptr<GradientCodec> floats_, codec_;
  Vector y_;
  uint32_t step_ = 0;  ///< steps since the first epoch
  double bits_ = 0;    ///< bits of all processors in this epoch
};

/// Theorem 3.6: (F + 2.8n)(T + 1) + Fn bits of a processor per epoch, with floats of F = 32 bits.
double qsvrg_bits_bound(double n, double steps);

}  // namespace tern::reproduce
