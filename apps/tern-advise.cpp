#include <algorithm>
#include <cstdio>

#include "tern/apps/tern-advise/forecast.h"
#include "tern/apps/tern-advise/measure.h"
#include "tern/apps/tern-advise/network.h"
#include "tern/apps/tern-advise/options.h"
#include "tern/apps/tern-advise/page.h"
#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/wait_policy.h"

// Says how workers should train a network together: `tern-advise --model lenet --link 100mbit --workers 8`.

namespace {

using namespace tern;

constexpr int kMostExtrapolated = 512;
constexpr double kFrameBytes = 48;  // of each message

/// No network is faster than this machine's own ranks are with each other.
LinkCost cost_of(const Link& link) {
  const LinkCost here = loopback_cost();
  const double latency = std::chrono::duration<double>(link.latency).count();
  return {.hop = here.hop + latency + kFrameBytes / link.bytes_per_second,
          .byte = std::max(here.byte, 1 / link.bytes_per_second)};
}

std::vector<Forecast> ranked(Forecaster& forecaster, int workers) {
  std::vector<Forecast> forecasts;
  for (const Way& way : forecaster.ways(workers)) forecasts.push_back(forecaster.forecast(way, workers));
  std::ranges::stable_sort(forecasts, {}, &Forecast::seconds);
  return forecasts;
}

ScalePoint scale_to(Forecaster& forecaster, int workers) {
  ScalePoint point = {.workers = workers};
  for (const Way& way : forecaster.ways(workers)) {
    if (!way.averages_every_step()) continue;
    const Forecast forecast = forecaster.forecast(way, workers);
    Forecast& best = way.codec == "none" ? point.floats : point.codes;
    if (best.way.codec.empty() || forecast.seconds() < best.seconds()) best = forecast;
  }
  return point;
}

}  // namespace

int main(int argc, char** argv) {
  wait_passively(argv);
  return run_application("tern-advise", [&]() -> int {
    const AdviceOptions options = read_advice_options(argc, argv);
    if (!options.text.empty()) {
      std::fputs(options.text.c_str(), stdout);
      return kDone;
    }
    const Network& network = find_network(options.model);
    Workbench workbench(network, {.ranks = static_cast<int>(options.ranks_per_machine),
                                  .threads = static_cast<int>(options.threads),
                                  .images = options.batch_size / options.workers,
                                  .seconds = options.seconds});
    Forecaster forecaster(workbench, cost_of(options.link), options.local_steps);
    const auto forecasts = ranked(forecaster, static_cast<int>(options.workers));
    std::vector<ScalePoint> scale;
    for (int workers = 2; workers <= kMostExtrapolated; workers *= 2) scale.push_back(scale_to(forecaster, workers));
    std::fputs(advice_page(network, options, {forecaster.compute(), forecaster.link()}, forecasts, scale).c_str(),
               stdout);
    return kDone;
  });
}
