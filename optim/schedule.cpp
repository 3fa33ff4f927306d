#include "tern/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tern/core/error.h"

namespace tern {
namespace {

/// t/steps, clamped to [0, 1].
double fraction(int64_t t, int64_t steps) {
  return static_cast<double>(std::clamp<int64_t>(t, 0, steps)) / static_cast<double>(steps);
}

void check_steps(int64_t steps, const char* name) {
  check(steps >= 1, name, " schedule: ", steps, " steps, expected 1 or more");
}

}  // namespace

Schedule constant_schedule(double lr) {
  return [=](int64_t) { return lr; };
}

Schedule poly_schedule(double lr, int64_t steps, double power) {
  check_steps(steps, "poly");
  check(power > 0, "poly schedule: power ", power, ", expected above 0");
  return [=](int64_t t) { return lr * std::pow(fraction(steps - t, steps), power); };
}

Schedule step_schedule(double lr, std::vector<int64_t> at, double factor) {
  check(std::ranges::is_sorted(at), "step schedule: the steps do not ascend");
  return [=, at = std::move(at)](int64_t t) {
    const auto passed = std::ranges::upper_bound(at, t) - at.begin();
    return lr * std::pow(factor, static_cast<double>(passed));
  };
}

Schedule cosine_schedule(double lr, int64_t steps) {
  check_steps(steps, "cosine");
  return [=](int64_t t) { return lr * (1 + std::cos(std::numbers::pi * fraction(t, steps))) / 2; };
}

Schedule warm_up(Schedule schedule, int64_t warmup) {
  check(warmup >= 0, "warm-up: ", warmup, " steps, expected 0 or more");
  return [schedule = std::move(schedule), warmup](int64_t t) {
    return t < warmup ? schedule(t) * fraction(t + 1, warmup) : schedule(t);
  };
}

Schedule hold_first(double lr, int64_t steps, Schedule schedule) {
  check(steps >= 0, "held rate: ", steps, " steps, expected 0 or more");
  return [=, schedule = std::move(schedule)](int64_t t) { return t < steps ? lr : schedule(t); };
}

}  // namespace tern
