#include "tern/optim/sgd.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

std::vector<std::string> state_names(const std::vector<ParameterGroup>& groups, const Sgd::Options& options) {
  const bool any = std::ranges::any_of(groups, [&](const ParameterGroup& group) {
    const double momentum = group.momentum.value_or(options.momentum);
    check(momentum >= 0 && momentum < 1, "sgd: momentum ", momentum, ", expected [0, 1)");
    return momentum > 0;
  });
  return any ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

}  // namespace

Sgd::Sgd(std::vector<NamedParameter> parameters, const Options& options)
    : Sgd(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Sgd::Sgd(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer(groups, options.lr, options.weight_decay, state_names(groups, options)), options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, "sgd: momentum ", options.momentum, ", expected [0, 1)");
  check(!options.nesterov || options.momentum > 0, "sgd: Nesterov's form needs momentum above 0");
}

void Sgd::update(std::span<const kernels::ParameterUpdate> updates, const GroupSettings& settings) {
  kernels::sgd_update(updates, {.lr = settings.lr,
                                .lr_scale = settings.lr_scale,
                                .momentum = settings.momentum.value_or(options_.momentum),
                                .weight_decay = settings.weight_decay,
                                .nesterov = options_.nesterov,
                                .gradient_scale = settings.gradient_scale});
}

}  // namespace tern
