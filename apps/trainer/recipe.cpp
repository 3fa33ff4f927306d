#include "tern/apps/trainer/recipe.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"

namespace tern {
namespace {

std::unique_ptr<Optimizer> make_rule(const TrainSettings& s, std::vector<NamedParameter> parameters) {
  const double weight_decay = s.weight_decay_in_gradient ? 0 : s.weight_decay;
  if (s.optimizer == "adam" || s.optimizer == "adamw")
    return std::make_unique<Adam>(
        std::move(parameters),
        Adam::Options{.lr = s.lr, .weight_decay = weight_decay, .decoupled = s.optimizer == "adamw"});
  return std::make_unique<Sgd>(std::move(parameters), Sgd::Options{.lr = s.lr,
                                                                   .momentum = s.optimizer == "sgd" ? 0 : s.momentum,
                                                                   .weight_decay = weight_decay,
                                                                   .nesterov = s.optimizer == "nesterov"});
}

Schedule make_course(const TrainSettings& s, int64_t total_steps) {
  const int64_t steps = std::max<int64_t>(1, total_steps);
  if (s.lr_schedule == "poly") return poly_schedule(s.lr, steps, s.lr_power);
  if (s.lr_schedule == "step") return step_schedule(s.lr, s.lr_steps);
  if (s.lr_schedule == "cosine") return cosine_schedule(s.lr, steps);
  return constant_schedule(s.lr);
}

/// A course that the run ends before is a mistake in one of the two; a run of no steps has none.
void check_length(const TrainSettings& s, int64_t total_steps) {
  if (total_steps == 0) return;
  check_input(s.warmup <= total_steps, "--warmup: found ", s.warmup, ", expected at most the run's ", total_steps,
              " steps");
  check_input(s.lr_steps.empty() || s.lr_steps.back() < total_steps, "--lr-steps: found ",
              s.lr_steps.empty() ? 0 : s.lr_steps.back(), ", expected less than the run's ", total_steps, " steps");
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model) {
  auto optimizer = make_rule(settings, model.parameters());
  optimizer->set_clip_norm(settings.clip_norm);
  return optimizer;
}

Schedule make_schedule(const TrainSettings& settings, int64_t total_steps) {
  check_length(settings, total_steps);
  Schedule course = make_course(settings, total_steps);
  return settings.warmup > 0 ? warm_up(std::move(course), settings.warmup) : course;
}

}  // namespace tern
