#pragma once

#include <map>
#include <optional>

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern::kernels {
struct BlockDctOptions;
}

namespace tern {

/// The DCT-II of each block of a tensor: kernels::block_dct, with the matrices of cosines, which it keeps. Used by one
/// thread.
class BlockDct {
 public:
  BlockDct(int64_t side, int64_t run) : side_(side), run_(run) {}

  /// Transforms x, f32, row-major, in place, on its device.
  void transform(Tensor& x) { transform(x, 1, x); }
  /// y = scale · the transform of x
  void transform(const Tensor& x, double scale, Tensor& y);
  /// Undoes `transform`.
  void restore(Tensor& x);
  /// Undoes it, and replaces each element by its sign: 1, -1, or 0 for 0.
  void restore_signs(Tensor& x);

 private:
  void apply(const Tensor& x, const kernels::BlockDctOptions& options, Tensor& y);
  /// kernels::cosines(n) on this device.
  const Tensor& cosines(int64_t n, Device device);

  int64_t side_, run_;
  std::map<int64_t, Tensor> cosines_;
};

/// DeMo, decoupled momentum (Peng et al., arXiv 2411.19870; bloc97/DeMo). Each rank keeps a momentum d of its own, and
/// ranks exchange only its strongest frequencies:
///
///   d ← decay·d + lr·g;  q = the `keep` largest coefficients of each block of DCT(d);  d ← d - IDCT(q);
///   θ ← θ(1 - lr·weight_decay) - lr·sign(IDCT(mean of the ranks' q))
///
/// DCT is the orthonormal DCT-II of tiles of at most 64 × 64 of a matrix, or runs of 64 of a vector. As it is linear,
/// DCT(d) is kept in place of d: it is the residual of the codec `topk-block`. The mean of a coefficient is over the
/// ranks that sent it (`allgather-sent`). The local optimizer takes the last line's step: a plain Sgd, without
/// momentum. Parameters are f32, and if the ranks' machines are of one kind, they stay the same, bit for bit, on all
/// ranks. `consolidate` copies rank 0's buffers to all ranks.
class DeMo final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t keep = 32;          ///< coefficients of a block, 1 to 4096
    double decay = 0.999;       ///< in (0, 1]
    int64_t check_every = 100;  ///< steps between comparisons of the ranks' parameters; 0: none
  };

  /// How the coefficients travel to become their means. Throws InputError if the options do not fit.
  static AveragingOptions averaging(const Options& options);

  /// Throws InputError if the options, the model or the local optimizer do not fit.
  DeMo(Module& model, Optimizer& local, Communicator& communicator, const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  void consolidate() override;
  /// This rank's DCT(d). Every rank saves its own.
  StateDict state() override { return averaging_.state(); }
  void load_state(const StateDict& state, int64_t steps) override { averaging_.load_state(state, steps > 0); }
  void confirm(int64_t steps) const override { averaging_.confirm(steps); }
  ExchangeTimes times() const override { return averaging_.times(); }

 private:
  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::optional<int64_t> step_;  // the step that has begun
  BlockDct dct_;
  Averaging averaging_;
};

}  // namespace tern
