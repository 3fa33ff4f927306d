#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tern/apps/reproduce/qsvrg.h"
#include "tern/apps/reproduce/sample.h"

namespace tern::reproduce {

/// A coded gradient: what the decoder gives for g in a step. Its random numbers depend on the step.
using CodedStep = std::function<Tensor(const Tensor& g, uint32_t step)>;

/// A stochastic descent as in TernGrad's Theorem 1 (Wen et al., 2017, eq. 17): w ← w − γ_t · coded ∇f_i(w), with i
/// drawn anew in each step and γ_t = 2 / (ℓ (t + t0)), so that Σ γ_t diverges and Σ γ_t² does not (Robbins and Monro,
/// 1951).
struct RobbinsMonro {
  const LinearProblem& problem;
  CodedStep code;
  double offset = 0;  ///< t0
  uint64_t seed = 1;  ///< of the examples

  /// ‖w_t − w*‖² / ‖w_0 − w*‖² after each of `steps` (in rising order), from w_0 = 0.
  std::vector<double> distances(const std::vector<int64_t>& steps, const LinearProblem::Vector& minimizer) const;
};

/// The steps 10, 20, 50, 100, 200, ... up to `last`, and `last`.
std::vector<int64_t> rising_steps(int64_t last);

/// One point of Lemma 1's condition, in the form of equation (25): E{h' − h} + 2γ (w − w*)ᵀ∇C(w) = γ² E{s ‖g‖₁} with
/// h = ‖w − w*‖² before and h' after a ternary step. Both sides are divided by γ².
struct LemmaPoint {
  double distance = 0;  ///< ‖w − w*‖²
  Sample left = {};     ///< one value for each draw: the mean over all examples
  double right = 0;     ///< E{max |g| · ‖g‖₁}, over all examples
};
/// The expectation over the examples is exact; that over the codes is a mean of `draws`.
LemmaPoint lemma_point(const LinearProblem& problem, const CodedStep& code, const LinearProblem::Vector& w,
                       const LinearProblem::Vector& minimizer, int64_t draws);

/// The decoder of tern's codec.
CodedStep coded_by(const std::string& codec, uint64_t seed);
/// A ternary code that rounds to the nearest of −s, 0 and s, and so is not unbiased: for contrast.
Tensor rounded_to_nearest(const Tensor& g, uint32_t step);

}  // namespace tern::reproduce
