#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tern {

/// The learning rate of step t, counted from 0: a pure function, so that a resumed run needs no state of it.
using Schedule = std::function<double(int64_t t)>;

/// lr
Schedule constant_schedule(double lr);

/// lr·(1 - t/steps)^power; 0 from `steps` on.
Schedule poly_schedule(double lr, int64_t steps, double power = 0.5);

/// lr·factor^n, where n of the steps `at` (ascending) are t or before.
Schedule step_schedule(double lr, std::vector<int64_t> at, double factor = 0.1);

/// lr·(1 + cos(π·t/steps))/2 (Loshchilov and Hutter's SGDR, one period, to 0); 0 from `steps` on.
Schedule cosine_schedule(double lr, int64_t steps);

/// (t + 1)/warmup of `schedule`, which is not shifted, while t < warmup.
Schedule warm_up(Schedule schedule, int64_t warmup);

/// `lr` while t < steps, then `schedule`, which is not shifted (He et al., 2016, section 4.2).
Schedule hold_first(double lr, int64_t steps, Schedule schedule);

}  // namespace tern
