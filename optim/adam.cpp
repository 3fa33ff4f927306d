#include "tern/optim/adam.h"

#include "tern/core/error.h"
#include "tern/kernels/update.h"

namespace tern {

Adam::Adam(std::vector<NamedParameter> parameters, const Options& options)
    : Adam(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Adam::Adam(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer(groups, options.lr, options.weight_decay, {"first", "second"}, true), options_(options) {
  for (double beta : {options.beta1, options.beta2})
    check(beta >= 0 && beta < 1, "adam: beta ", beta, ", expected [0, 1)");
  for (const ParameterGroup& group : groups)
    check(!group.momentum, "adam: a group has momentum ", group.momentum.value_or(0), ", expected none");
  check(options.epsilon > 0, "adam: epsilon ", options.epsilon, ", expected above 0");
}

void Adam::update(std::span<const kernels::ParameterUpdate> updates, const GroupSettings& settings) {
  kernels::adam_update(updates, {.lr = settings.lr,
                                 .lr_scale = settings.lr_scale,
                                 .beta1 = options_.beta1,
                                 .beta2 = options_.beta2,
                                 .epsilon = options_.epsilon,
                                 .weight_decay = settings.weight_decay,
                                 .decoupled = options_.decoupled,
                                 .gradient_scale = settings.gradient_scale});
}

}  // namespace tern
