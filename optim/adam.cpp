#include "tern/optim/adam.h"

#include "tern/core/error.h"

namespace tern {

Adam::Adam(std::vector<NamedParameter> parameters, const Options& options)
    : Adam(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Adam::Adam(std::vector<ParameterGroup> groups, const Options& options)
    : Optimizer(std::move(groups), options.lr, options.weight_decay, {"first", "second"}),
      options_(options),
      step_(Tensor::zeros({}, {.dtype = DType::i64})) {
  for (double beta : {options.beta1, options.beta2})
    check(beta >= 0 && beta < 1, "adam: beta ", beta, ", expected [0, 1)");
  check(options.epsilon > 0, "adam: epsilon ", options.epsilon, ", expected above 0");
}

StateDict Adam::state() {
  StateDict state = Optimizer::state();
  state.add("step", step_);
  return state;
}

void Adam::count_step(Device device) { step_number_.set(static_cast<double>(++*step_.data<int64_t>()), device); }

void Adam::update(std::span<const kernels::ParameterUpdate> updates, const GroupSettings& settings) {
  kernels::adam_update(updates, {.lr = settings.lr,
                                 .step = step_number_.tensor(),
                                 .lr_scale = settings.lr_scale,
                                 .beta1 = options_.beta1,
                                 .beta2 = options_.beta2,
                                 .epsilon = options_.epsilon,
                                 .weight_decay = settings.weight_decay,
                                 .decoupled = options_.decoupled,
                                 .gradient_scale = settings.gradient_scale});
}

}  // namespace tern
