#include "tern/optim/adam.h"

#include "tern/core/error.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

class AdamRule final : public StepRule {
 public:
  explicit AdamRule(const Adam::Options& options) : options_(options) {
    for (double beta : {options.beta1, options.beta2})
      check(beta >= 0 && beta < 1, "adam: beta ", beta, ", expected [0, 1)");
    check(options.epsilon > 0, "adam: epsilon ", options.epsilon, ", expected above 0");
  }

  void check_group(const ParameterGroup& group) const override {
    check(!group.settings.momentum, "adam: a group has momentum ", group.settings.momentum.value_or(0),
          ", expected none");
  }
  std::vector<std::string> state_names(const GroupSettings&) const override { return {"first", "second"}; }
  bool counts_steps() const override { return true; }
  bool writes_copies() const override { return true; }
  bool takes_narrow() const override { return true; }
  void update(std::span<const kernels::ParameterUpdate> updates, const Step& step) const override {
    kernels::adam_update(updates, {.lr = step.lr,
                                   .beta1 = options_.beta1,
                                   .beta2 = options_.beta2,
                                   .epsilon = options_.epsilon,
                                   .weight_decay = step.weight_decay,
                                   .decoupled = options_.decoupled,
                                   .gradient_scale = step.gradient_scale});
  }

 private:
  Adam::Options options_;
};

}  // namespace

Adam::Adam(std::vector<NamedParameter> parameters, const Options& options)
    : Adam(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Adam::Adam(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer(groups, options.lr, options.weight_decay, std::make_shared<AdamRule>(options)) {}

std::shared_ptr<const StepRule> Adam::rule(const Options& options) {
  detail::check_rule_alone(options);
  return std::make_shared<AdamRule>(options);
}

}  // namespace tern
