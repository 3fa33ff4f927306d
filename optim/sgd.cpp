#include "tern/optim/sgd.h"

#include "tern/core/error.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

void check_momentum(double momentum) {
  check(momentum >= 0 && momentum < 1, "sgd: momentum ", momentum, ", expected [0, 1)");
}

class SgdRule final : public StepRule {
 public:
  explicit SgdRule(const Sgd::Options& options) : options_(options) {
    check_momentum(options.momentum);
    check(!options.nesterov || options.momentum > 0, "sgd: Nesterov's form needs momentum above 0");
  }

  void check_group(const ParameterGroup& group) const override { check_momentum(momentum(group.settings.momentum)); }
  std::vector<std::string> state_names(const GroupSettings& settings) const override {
    return momentum(settings.momentum) > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }
  bool by_blocks() const override { return true; }
  bool writes_copies() const override { return true; }
  bool takes_narrow() const override { return true; }
  void update(std::span<const kernels::ParameterUpdate> updates, const Step& step) const override {
    kernels::sgd_update(updates, {.lr = step.lr,
                                  .momentum = momentum(step.momentum),
                                  .weight_decay = step.weight_decay,
                                  .nesterov = options_.nesterov,
                                  .gradient_scale = step.gradient_scale});
  }

 private:
  double momentum(const std::optional<double>& of_group) const { return of_group.value_or(options_.momentum); }

  Sgd::Options options_;
};

}  // namespace

Sgd::Sgd(std::vector<NamedParameter> parameters, const Options& options)
    : Sgd(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Sgd::Sgd(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer(groups, options.lr, options.weight_decay, std::make_shared<SgdRule>(options)) {}

std::shared_ptr<const StepRule> Sgd::rule(const Options& options) {
  detail::check_rule_alone(options);
  return std::make_shared<SgdRule>(options);
}

}  // namespace tern
