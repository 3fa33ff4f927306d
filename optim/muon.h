#pragma once

#include "tern/optim/optimizer.h"

namespace tern {

/// Muon (Jordan, 2024; Thérien et al., "MuLoCo", arXiv 2505.23725): momentum whose step is almost orthogonal.
///
///   v ← μv + g;  G = g + μv, or v without Nesterov's form;  w ← w - lr·(X + weight_decay·w),  X = `orthogonal`(G)
///
/// It is for matrices [rows, columns] and for filters, which count as matrices [out, in·kh·kw]. Vectors, embeddings
/// and the last layer are for another rule: give their group one, as in
///
///   Muon({{hidden}, {rest, {.lr_scale = 0.015, .rule = Adam::rule({.decoupled = true})}}}, {.lr = 0.02})
///
/// A parameter of rank 0 or 1 in a group without a rule throws Error. State: "momentum.<parameter>".
class Muon final : public Optimizer {
 public:
  struct Options {
    double lr = 0.02;
    double momentum = 0.95;  ///< μ in [0, 1)
    double weight_decay = 0;
    bool nesterov = true;
    int iterations = 5;               ///< Newton-Schulz, 1 or more
    DType arithmetic = DType::f32;    ///< of the iterations: f32 or bf16; f64 parameters use f64
    bool normalizes_weights = false;  ///< w ← w·√rows/‖w‖ before each update
  };

  Muon(std::vector<NamedParameter> parameters, const Options& options);
  Muon(const std::vector<ParameterGroup>& groups, const Options& options);

  /// The rule alone, for groups of another optimizer, which gives it the learning rate and the weight decay. Throws
  /// InputError if one of the two differs from its default.
  static std::shared_ptr<const StepRule> rule(const Options& options);
};

/// The matrix g [rows, columns] with its singular values moved to about 1: from g divided by its norm, `iterations`
/// times X ← aX + (bA + cA²)X with A = XXᵀ and (a, b, c) = (3.4445, -4.775, 2.0315) (Jordan, 2024). After 5, the values
/// that were not near 0 lie between 0.68 and 1.14. g is f32 or f64, and the result has its dtype. Throws Error unless g
/// is a matrix.
Tensor orthogonal(const Tensor& g, int iterations);

}  // namespace tern
