#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/state_dict.h"
#include "tern/core/tensor.h"
#include "tern/kernels/update.h"

namespace tern {

/// What a model is, beside a Module, of which weight decay shrinks a part alone.
class PartlyDecayed {
 public:
  virtual ~PartlyDecayed() = default;
  virtual bool decays(std::string_view parameter) const = 0;
};

/// Whether weight decay shrinks `parameter` of `model`: as a PartlyDecayed says, and all of any other.
template <class Model>
bool decays(const Model& model, std::string_view parameter) {
  const auto* partly = dynamic_cast<const PartlyDecayed*>(&model);
  return partly == nullptr || partly->decays(parameter);
}

/// A number of an update that changes from step to step, where the kernels read it. Used by one thread.
class StepNumber {
 public:
  /// In the order of the device's work.
  void set(double value, Device device);
  /// [], f64; the same memory as long as the device is the same.
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  double value_ = 0;  // that it holds
};

/// The state "step.<parameter>": i64 [], the updates that the parameter has had.
inline constexpr std::string_view kStepState = "step";

/// Parameters that are updated alike.
struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  double lr_scale = 1;                      ///< times the optimizer's learning rate
  std::optional<double> weight_decay = {};  ///< the optimizer's where unset
};

/// Base of the optimizers: groups of parameters, which it does not own, and the state beside each. One `step` is one
/// fused kernel call per group. A parameter whose gradient is undefined is left as it is, state included, as in
/// PyTorch; one that was given another shape begins with new state. Used by one thread at a time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter in place from its gradient: `begin_step`, then `issue_step`.
  void step();
  /// What the CPU sends to where the parameters are.
  void begin_step();
  /// The rest of `step`: work of the parameters' device alone, which can be recorded once a step has been taken, and
  /// then runs again after each `begin_step`.
  void issue_step();
  void zero_gradients();

  double learning_rate() const { return lr_; }
  /// Finite and not negative; schedules call it before each step.
  void set_learning_rate(double lr);
  /// Scales all gradients down together, inside the update, where their global 2-norm is above `max_norm`, by
  /// max_norm / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_. 0: never.
  void set_clip_norm(double max_norm);

  /// What the next step depends on beside parameters, gradients and settings: "momentum.conv1.weight". Shares storage
  /// with the optimizer.
  StateDict state();
  /// Copies a `state()` in; an InputError names the first tensor that is missing, unexpected or of another shape, and
  /// then nothing has changed. A single "step", as states had before each parameter had its own, counts for all.
  void load_state(const StateDict& state);

 protected:
  /// `state_names`: what is kept per parameter, none to two names, in the order `first`, `second` of ParameterUpdate.
  /// `counts_steps`: also `steps`, as `kStepState`.
  Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay, std::vector<std::string> state_names,
            bool counts_steps = false);

  struct GroupSettings {
    Tensor lr;  ///< as in SgdSettings
    double lr_scale, weight_decay;
    Tensor gradient_scale;
  };
  virtual void update(std::span<const kernels::ParameterUpdate> updates, const GroupSettings& settings) = 0;

 private:
  struct Slot {
    NamedParameter named;
    Tensor state[2], steps;
  };
  struct Group {
    std::vector<Slot> slots;
    double lr_scale, weight_decay;
  };

  void prepare_state(Slot& slot) const;
  /// Parameters with a gradient, one list per group.
  std::vector<std::vector<kernels::ParameterUpdate>> gather();
  /// As in SgdSettings.
  Tensor gradient_scale(const std::vector<std::vector<kernels::ParameterUpdate>>& updates) const;

  std::vector<Group> groups_;
  std::vector<std::string> state_names_;
  bool counts_steps_;
  double lr_ = 0;
  StepNumber step_lr_;
  double clip_norm_ = 0;
};

}  // namespace tern
