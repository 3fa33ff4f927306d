#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/error.h"
#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"

namespace tern::kernels {
struct ParameterUpdate;
}

namespace tern {

/// Interface of a model, in addition to Module, if weight decay applies only to some of its parameters.
class PartlyDecayed {
 public:
  virtual ~PartlyDecayed() = default;
  virtual bool decays(std::string_view parameter) const = 0;
};

/// Whether weight decay applies to `parameter` of `model`. PartlyDecayed decides; for any other model it is always
/// true.
template <class Model>
bool decays(const Model& model, std::string_view parameter) {
  const auto* partly = dynamic_cast<const PartlyDecayed*>(&model);
  return partly == nullptr || partly->decays(parameter);
}

/// A number for the update that can change with each step, for example the learning rate, in memory that the kernels
/// read. Used by one thread.
class StepNumber {
 public:
  /// Sets the number on `device`, in the order of the device's work.
  void set(double value, Device device);
  /// Shape [], f64. Keeps the same memory as long as the device is the same.
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  double value_ = 0;  // value in tensor_
};

/// The state "step.<parameter>": i64 [], the number of updates of the parameter.
inline constexpr std::string_view kStepState = "step";

namespace detail {

/// Throws an Error that begins with `who` if the parameter has no value yet.
void check_has_value(const char* who, const NamedParameter& named);

}  // namespace detail

class StepRule;

/// Settings that a group of parameters has of its own. Those that are unset are the optimizer's.
struct GroupSettings {
  double lr_scale = 1;  ///< factor of the optimizer's learning rate
  std::optional<double> weight_decay = {}, momentum = {};
  std::shared_ptr<const StepRule> rule = {};
};

/// Parameters that share the same settings.
struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  GroupSettings settings = {};
};

/// How parameters change with their gradients, and the state that each has for it. Immutable.
class StepRule {
 public:
  /// The numbers of a step.
  struct Step {
    Tensor lr;  ///< as in kernels::SgdSettings
    double weight_decay = 0;
    std::optional<double> momentum = {};  ///< the group's; unset: the rule's own
    Tensor gradient_scale = {};           ///< as in kernels::SgdSettings
  };

  virtual ~StepRule() = default;
  /// Throws Error if the rule cannot update these parameters with these settings.
  virtual void check_group(const ParameterGroup& group) const = 0;
  /// The names of a parameter's states, zero to two, in the order `first`, `second` of ParameterUpdate.
  virtual std::vector<std::string> state_names(const GroupSettings& settings) const = 0;
  /// Whether each parameter also has `steps`, named `kStepState`.
  virtual bool counts_steps() const { return false; }
  /// Whether the rule can update some rows of a parameter from a gradient by rows.
  virtual bool by_rows() const { return true; }
  /// Whether a parameter can be updated block by block, with the same bits.
  virtual bool by_blocks() const { return false; }
  /// Whether the rule also writes each `copy`. Otherwise it gets none.
  virtual bool writes_copies() const { return false; }
  /// Whether the rule also takes gradients in bf16 of parameters on a GPU. Otherwise it gets them in f32.
  virtual bool takes_narrow() const { return false; }
  /// Changes each `w` and its states from its gradient `g`, on the device of the parameters and without waiting for it.
  virtual void update(std::span<const kernels::ParameterUpdate> updates, const Step& step) const = 0;
};

namespace detail {

/// Throws InputError if the options of a rule alone have another learning rate or weight decay than by default: those
/// are the optimizer's or the group's.
template <class Options>
void check_rule_alone(const Options& options) {
  constexpr const char* kInstead = "; set it in the optimizer's options, or in the group's settings as ";
  check_input(options.lr == Options().lr, "optimizer: a rule alone has no learning rate, found ", options.lr, kInstead,
              "lr_scale");
  check_input(options.weight_decay == Options().weight_decay, "optimizer: a rule alone has no weight decay, found ",
              options.weight_decay, kInstead, "weight_decay");
}

}  // namespace detail

/// Settings for the parameters whose names match a pattern, as `name_matches` reads it.
struct GroupRule {
  std::string pattern;
  GroupSettings settings = {};
};
/// One group for each rule, and a last one for the rest. A parameter belongs to the first rule that it matches. Throws
/// InputError if no parameter belongs to a rule.
std::vector<ParameterGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                             std::span<const GroupRule> rules);

/// Updates parameters by a rule, or by several: each group can have its own. Holds the groups of parameters, which it
/// does not own, and the state of each parameter. One `step` calls the rule of each group once. If a gradient is
/// undefined, the parameter and its state do not change, as in PyTorch. If a parameter has a new shape, its state
/// starts again from zero. Used by one thread at a time.
///
/// A gradient by rows (`Parameter::row_gradient`) updates only these rows of the parameter and of its state: momentum,
/// moments and weight decay of the other rows wait, as in torch.optim.SparseAdam. Adam counts one step for the whole
/// parameter. The rows get the bits that they would get from the same gradient with all rows.
class Optimizer {
 public:
  /// `rule` is that of the groups without one of their own. Throws Error if a setting is out of its range, a parameter
  /// is null or in two groups, or a rule cannot update its group.
  Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay, std::shared_ptr<const StepRule> rule);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter in place from its gradient: calls `begin_step`, then `issue_step`.
  void step();
  /// Sends the learning rate to the device of the parameters.
  void begin_step();
  /// The rest of `step`. It uses only the device of the parameters, so it can be recorded after the first step. A
  /// recording can then run again after each `begin_step`.
  void issue_step();
  void zero_gradients();

  /// From now on, an operation that gives a gradient by blocks of rows updates them inside `backward`
  /// (`Parameter::on_rows`), with the bits of `step`, and the whole gradient is never in memory. Set the learning rate
  /// before `backward`, and call `backward` once for each `step`. Throws InputError if a rule is not `by_blocks` or
  /// if gradients are clipped, because a norm needs the whole gradient. The optimizer must outlive the parameters' use.
  void update_in_backward();
  /// Whether the rules of all groups can update a parameter block by block.
  bool by_blocks() const;

  double learning_rate() const { return lr_; }
  /// Sets the learning rate of all groups: `lr` times the group's lr_scale. Throws if it is negative or not finite.
  /// Schedules call this before each step.
  void set_learning_rate(double lr);
  /// Sets the rate of one group, until the next call for all of them. `group` counts the constructor's, from 0.
  void set_learning_rate(size_t group, double lr);
  /// If the global 2-norm of all gradients is above `max_norm`, multiplies all gradients by max_norm / (norm + 1e-6)
  /// inside the update, as torch.nn.utils.clip_grad_norm_ does. 0 turns clipping off. Throws if `max_norm` is negative
  /// or not finite, and InputError if it is not 0 after `update_in_backward`.
  void set_clip_norm(double max_norm);
  /// Whether each step also measures the 2-norm of all gradients together. At first it does not.
  void measure_gradient_norm(bool measure) { measures_norm_ = measure; }
  /// The sum of the squares of all gradients in the last step, before clipping: f64, rank 0, on the device of the
  /// parameters. Undefined if it was not measured.
  const Tensor& squared_gradient_norm() const { return squared_norm_; }

  /// The state that the next step depends on in addition to parameters, gradients and settings, for example
  /// "momentum.conv1.weight". Shares storage with the optimizer.
  StateDict state();
  /// Copies a `state()` in. Throws InputError that names the first tensor that is missing, unexpected or of another
  /// shape; then nothing has changed. A single tensor "step", from before each parameter had its own count, sets the
  /// counts of all parameters.
  void load_state(const StateDict& state);

 private:
  struct Slot {
    NamedParameter named;
    Tensor state[2], steps;
  };
  struct Group {
    std::vector<Slot> slots;
    GroupSettings settings;  // all set, except perhaps the momentum
    std::vector<std::string> state_names;
    double lr = 0;
    StepNumber step_lr = {};

    StepRule::Step step(const Tensor& gradient_scale) const {
      return {step_lr.tensor(), *settings.weight_decay, settings.momentum, gradient_scale};
    }
  };

  /// An update of copies of a parameter's rows.
  struct RowUpdate;

  static void prepare_state(const Group& group, Slot& slot);
  /// The device of the parameters; nullopt if there are none.
  std::optional<Device> device() const;
  /// Parameters with a gradient, one list per group. Copies the rows that have a gradient by rows, into `rows` too.
  std::vector<std::vector<kernels::ParameterUpdate>> gather(std::vector<RowUpdate>& rows);
  /// Updates rows [first, first + k) of a parameter, inside `backward`.
  void update_block(Group& group, Slot& slot, int64_t first, const Tensor& gradient);
  /// Sets squared_norm_ if it is needed.
  void measure_norm(const std::vector<std::vector<kernels::ParameterUpdate>>& updates);
  /// The factor of the gradients, as in SgdSettings. Undefined if clipping is off.
  Tensor gradient_scale() const;

  std::vector<Group> groups_;
  double lr_ = 0;
  double clip_norm_ = 0;
  bool updates_in_backward_ = false;
  bool measures_norm_ = false;
  Tensor squared_norm_;
  double squared_norm_of_blocks_ = 0;  ///< of the gradients that `backward` has used up since the last step
};

}  // namespace tern
