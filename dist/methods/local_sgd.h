#pragma once

#include <memory>

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/own_model.h"

namespace tern {

/// The step that turns the mean change Δ of the ranks' models into the next common model θ, with Nesterov's momentum:
/// m ← μm + Δ; θ ← θ - η(Δ + μm). With η = 1 and μ = 0 the next model is the mean of the ranks' models.
struct OuterStep {
  double lr = 1;        ///< η, above 0
  double momentum = 0;  ///< μ in [0, 1)
};

/// Streaming DiLoCo (Douillard et al., arXiv 2501.18512): ranks exchange one fragment of the model at a time, while
/// they train on. Fragment p of P has its turn after t steps if t mod H = ⌊p·H/P⌋, for rounds of H steps.
struct StreamingOptions {
  int64_t fragments = 1;  ///< P, at most H: consecutive parameters, with about as many elements each
  int64_t delay = 0;  ///< τ, below H: a fragment's change is sent τ steps before its turn, and arrives at its turn
  double mix = 0;     ///< α in [0, 1): at its turn a fragment becomes (1 - α) θ + α · this rank's own values
};

/// Local SGD (Stich, 2019). Each rank trains alone for some steps, with its own optimizer, whose state stays local.
/// Then all ranks' models become their mean. The codec encodes each rank's change since the last synchronisation.
/// Floating-point buffers (batch-norm statistics) are averaged without the codec. Parameters are the same, bit for bit,
/// on all ranks only after each synchronisation, which comes after t steps if t is a multiple of `local_steps`.
///
/// With the codec `topk-block` and a decay β it is SparseLoCo (arXiv 2508.15706; β = 0.95): e ← βe + Δ of this rank; it
/// sends the 64 largest of 4,096 elements of e, and e keeps what was not sent; θ ← θ - η · the mean of what the ranks
/// sent. The authors' code also scales a rank's norm down to the median, which this class does not.
///
/// With `outer` it is DiLoCo (Douillard et al., arXiv 2311.08105; algorithm 1), and with `streaming` Streaming DiLoCo.
/// Then the last fragment's turn also averages the buffers. If `mix` is above 0, ranks have different models even after
/// a turn; the common model θ is still the same on all of them.
///
/// `consolidate` makes the model the mean of the ranks' models, and the next step continues with the rank's own model.
/// So neither an evaluation nor a checkpoint changes the training.
class LocalSgd final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< between two synchronisations
    AveragingOptions averaging = {};
    int64_t check_every = 100;  ///< steps between comparisons of parameters, at the next synchronisation; 0: none
    OuterStep outer = {};
    StreamingOptions streaming = {};
    std::string name = "local-sgd";  ///< for messages
  };

  /// Throws InputError if the options do not fit each other or the model.
  LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  /// Within a round the mean is exact (f32), whatever the codec, because the codec's residuals and random numbers
  /// belong to the synchronisations. Its bytes count as overhead.
  void consolidate() override;
  /// Call it after `consolidate`. Holds this rank's residuals and the outer momentum. Within a round it also holds this
  /// rank's own model, the common model, and the means that the next turns use.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  void confirm(int64_t steps) const override;
  ExchangeTimes times() const override;

 private:
  /// Changes if a tensor is written to, or is another one.
  struct WriteMark {
    const void* data = nullptr;
    uint32_t version = 0;
    bool operator==(const WriteMark&) const = default;
  };
  static std::vector<WriteMark> marks_of(std::span<const Tensor> tensors);

  /// Parameters [begin, end) of the model, which the ranks exchange together.
  struct Fragment {
    size_t begin = 0, end = 0;
    int64_t offset = 0;                         ///< its turns are after t steps if t mod H = offset
    std::unique_ptr<Averaging> averaging = {};  ///< of the parameters, and for the last fragment also of the buffers
    std::vector<Tensor> base = {};              ///< θ; empty before the first round
    bool in_round = false;                      ///< otherwise the model's values are θ
    std::vector<WriteMark> marks = {};          ///< of the model's values when they became θ
    std::vector<Tensor> velocity = {};          ///< m; empty before the first turn, or if μ is 0
    bool under_way = false;                     ///< between sending and the turn
    std::vector<Tensor> means = {};             ///< of the exchange under way, if `consolidate` has waited for it

    size_t size() const { return end - begin; }
  };

  std::vector<Fragment> cut(const AveragingOptions& averaging);
  int64_t first_turn(const Fragment& fragment) const;
  /// Whether the model's values after `steps` steps are the fragment's θ.
  bool has_base_in_model(const Fragment& fragment, int64_t steps) const;
  bool is_sent_before_turn(const Fragment& fragment, int64_t steps) const;

  bool averages_buffers(const Fragment& fragment) const { return fragment.end == own_.parameters().size(); }
  void send(Fragment& fragment);
  void settle(Fragment& fragment);
  void take_turn(Fragment& fragment);
  /// Takes the outer step with these mean changes, and copies the new θ to the model's parameters.
  void update_base(Fragment& fragment, std::span<const Tensor> changes, std::span<const Tensor> parameters);

  /// The fragment's parameters, and the buffers if it averages them. They share storage with the model.
  std::vector<Tensor> values(const Fragment& fragment) const;
  /// The part of `state` without the residuals. Shares storage with this object.
  StateDict round_state() const;

  Communicator& communicator_;
  Options options_;
  OwnModel own_;
  std::vector<Fragment> fragments_;
  int64_t step_ = 0;
  double wait_ = 0;  ///< seconds, for the means of `consolidate`
};

}  // namespace tern
