#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tern/apps/reproduce/linear_problem.h"
#include "tern/dist/codec/codec.h"

namespace tern {

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

}  // namespace tern
