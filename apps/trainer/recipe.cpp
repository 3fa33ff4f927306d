#include "tern/apps/trainer/recipe.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/sgd.h"

namespace tern {
namespace {

/// The parameters that weight decay shrinks, and the others.
std::vector<ParameterGroup> groups_of(Module& model) {
  std::vector<ParameterGroup> groups(2);
  groups[1].weight_decay = 0;
  for (auto& named : model.parameters())
    groups[decays(model, named.name) ? 0 : 1].parameters.push_back(std::move(named));
  return groups;
}

std::unique_ptr<Optimizer> make_rule(const TrainSettings& s, Module& model) {
  const double weight_decay = s.weight_decay_in_gradient ? 0 : s.weight_decay;
  if (s.optimizer == "adam" || s.optimizer == "adamw")
    return std::make_unique<Adam>(
        groups_of(model), Adam::Options{.lr = s.lr, .weight_decay = weight_decay, .decoupled = s.optimizer == "adamw"});
  return std::make_unique<Sgd>(groups_of(model), Sgd::Options{.lr = s.lr,
                                                              .momentum = s.optimizer == "sgd" ? 0 : s.momentum,
                                                              .weight_decay = weight_decay,
                                                              .nesterov = s.optimizer == "nesterov"});
}

/// The steps from which on the rate is a tenth: shares of the run, below 1, are rounded up.
std::vector<int64_t> steps_of(const TrainSettings& s, int64_t total_steps) {
  std::vector<int64_t> steps;
  for (const double at : s.lr_steps)
    steps.push_back(static_cast<int64_t>(at < 1 ? std::ceil(at * static_cast<double>(total_steps)) : at));
  return steps;
}

Schedule make_course(const TrainSettings& s, int64_t total_steps) {
  const int64_t steps = std::max<int64_t>(1, total_steps);
  if (s.lr_schedule == "poly") return poly_schedule(s.lr, steps, s.lr_power);
  if (s.lr_schedule == "step") return step_schedule(s.lr, steps_of(s, total_steps));
  if (s.lr_schedule == "cosine") return cosine_schedule(s.lr, steps);
  return constant_schedule(s.lr);
}

/// A course that the run ends before is a mistake in one of the two; a run of no steps has none, and a rate that is
/// held may be held to the end.
void check_length(const TrainSettings& s, int64_t total_steps) {
  if (total_steps == 0) return;
  check_input(s.warmup_lr > 0 || s.warmup <= total_steps, "--warmup: found ", s.warmup, ", expected at most the run's ",
              total_steps, " steps");
  if (s.lr_steps.empty()) return;
  const double last = s.lr_steps.back();
  check_input(last < static_cast<double>(total_steps), "--lr-steps: found ", last, ", expected less than the run's ",
              total_steps, " steps");
  const auto steps = steps_of(s, total_steps);
  const auto fall = std::ranges::is_sorted_until(steps);
  check_input(fall == steps.end(), "--lr-steps: in a run of ", total_steps, " steps found ",
              fall == steps.end() ? 0 : *fall, " after ", fall == steps.end() ? 0 : *(fall - 1),
              ", expected steps in rising order");
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model) {
  auto optimizer = make_rule(settings, model);
  optimizer->set_clip_norm(settings.clip_norm);
  return optimizer;
}

Schedule make_schedule(const TrainSettings& settings, int64_t total_steps) {
  check_length(settings, total_steps);
  Schedule course = make_course(settings, total_steps);
  if (settings.warmup == 0) return course;
  return settings.warmup_lr > 0 ? hold_first(settings.warmup_lr, settings.warmup, std::move(course))
                                : warm_up(std::move(course), settings.warmup);
}

}  // namespace tern
