#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tern {

/// The learning rate of step t, counted from 0. A pure function, so that a resumed run needs no state of it.
using Schedule = std::function<double(int64_t t)>;

/// lr
Schedule constant_schedule(double lr);

/// lr·(1 - t/steps)^power; 0 from step `steps` on. Throws if steps < 1 or power <= 0.
Schedule poly_schedule(double lr, int64_t steps, double power = 0.5);

/// lr·factor^n, with n the number of steps in `at` that are <= t. Throws if `at` is not sorted in ascending order.
Schedule step_schedule(double lr, std::vector<int64_t> at, double factor = 0.1);

/// lr·(1 + cos(π·t/steps))/2 (Loshchilov and Hutter's SGDR, one period, down to 0); 0 from step `steps` on. Throws if
/// steps < 1.
Schedule cosine_schedule(double lr, int64_t steps);

/// (t + 1)/warmup · `schedule`(t) while t < warmup, then `schedule`(t). `schedule` is not shifted. Throws if warmup <
/// 0.
Schedule warm_up(Schedule schedule, int64_t warmup);

/// `lr` while t < steps, then `schedule`(t). `schedule` is not shifted (He et al., 2016, section 4.2). Throws if steps
/// < 0.
Schedule hold_first(double lr, int64_t steps, Schedule schedule);

}  // namespace tern
