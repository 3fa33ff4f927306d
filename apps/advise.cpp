#include <algorithm>
#include <span>
#include <string_view>

#include "tern/apps/advise/forecast.h"
#include "tern/apps/advise/options.h"
#include "tern/apps/advise/page.h"
#include "tern/apps/advise/postmortem.h"
#include "tern/core/program.h"
#include "tern/trainer/application.h"
#include "tern/trainer/job/program.h"

// Advises how workers train a network together: `advise --model lenet --link 100mbit --workers 8`. And says why a job
// failed: `advise postmortem DIR`.

namespace tern::advise {
namespace {

constexpr int kMostExtrapolated = 512;
constexpr int kPasses = 3;

/// Makes the passes one after the other. Each pass measures everything, so that drift of the machine shows as a
/// difference between passes.
std::vector<Forecaster> measured_passes(Workbench& workbench, const AdviceOptions& options) {
  std::vector<Forecaster> passes;
  const int workers = static_cast<int>(options.workers);
  for (int pass = 0; pass < kPasses; ++pass) {
    Forecaster& forecaster = passes.emplace_back(workbench, options.link, options.local_steps);
    for (const Way& way : forecaster.ways(workers)) forecaster.forecast(way, workers);
  }
  return passes;
}

std::vector<Forecast> ranked(std::span<Forecaster> passes, int workers) {
  std::vector<Forecast> forecasts;
  for (const Way& way : passes.front().ways(workers)) forecasts.push_back(median_forecast(passes, way, workers));
  std::ranges::stable_sort(forecasts, {}, &Forecast::seconds);
  return forecasts;
}

ScalePoint scale_to(std::span<Forecaster> passes, int workers) {
  ScalePoint point = {.workers = workers};
  for (const Way& way : passes.front().ways(workers)) {
    if (!way.averages_every_step()) continue;
    const Forecast forecast = median_forecast(passes, way, workers);
    Forecast& best = way.sends_floats() ? point.floats : point.codes;
    if (best.passes.empty() || forecast.seconds() < best.seconds()) best = forecast;
  }
  return point;
}

}  // namespace
}  // namespace tern::advise

int main(int argc, char** argv) {
  using namespace tern::advise;
  tern::trainer::settle_output();
  tern::wait_passively(argc, argv);
  return tern::run_application("advise", [&]() -> int {
    if (argc > 1 && argv[1] == std::string_view("postmortem")) return run_postmortem(argc - 1, argv + 1);
    const AdviceOptions options = read_advice_options(argc, argv);
    if (!options.text.empty()) {
      tern::trainer::print_plainly(options.text);
      return tern::kDone;
    }
    const auto variant = find_model(options.model);
    Workbench workbench(variant, {.ranks = static_cast<int>(options.ranks_per_machine),
                                  .threads = static_cast<int>(options.threads),
                                  .images = options.batch_size / options.workers,
                                  .seconds = options.seconds / kPasses});
    std::vector<Forecaster> passes = measured_passes(workbench, options);
    std::vector<Measured> measured;
    for (const Forecaster& pass : passes) measured.push_back(pass.measured());
    const auto forecasts = ranked(passes, static_cast<int>(options.workers));
    std::vector<ScalePoint> scale;
    for (int workers = 2; workers <= kMostExtrapolated; workers *= 2) scale.push_back(scale_to(passes, workers));
    tern::trainer::print_plainly(advice_page(variant, options, measured, forecasts, scale));
    return tern::kDone;
  });
}
