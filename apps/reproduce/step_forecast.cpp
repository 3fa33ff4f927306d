#include "tern/apps/reproduce/step_forecast.h"

#include "tern/apps/advise/forecast.h"
#include "tern/apps/reproduce/run_settings.h"
#include "tern/dist/cost/subnet_round.h"
#include "tern/trainer/run/recipe.h"

namespace tern::reproduce {
namespace {

/// What `workers` ranks send to each other in a round.
std::vector<ExchangePlan> plans(Module& model, const TrainSettings& settings, int workers) {
  const advise::Way way = advise::way_of(settings, workers);
  if (way.method == TrainingMethod::ist) {
    const SubnetCuts cuts(dynamic_cast<SubnetModel&>(model).subnet_plan(way.scope), model);
    return {plan_subnet_round(cuts, model.state(), {}, {.ranks = workers})};
  }
  std::vector<ExchangePlan> plans;
  for (const auto& message : advise::plan_round(model, way, workers).messages) plans.push_back(message.plan);
  return plans;
}

/// The cost of an element if all elements of these plans take `encode` and `decode` seconds.
CodecCost cost_of(const std::vector<ExchangePlan>& plans, double encode, double decode) {
  double encoded = 0, decoded = 0;
  for (const ExchangePlan& plan : plans) {
    encoded += plan.encoded();
    decoded += plan.decoded();
  }
  return {.encode = encoded > 0 ? encode / encoded : 0, .decode = decoded > 0 ? decode / decoded : 0};
}

}  // namespace

StepForecast::StepForecast(const networks::Network& network, const Run& run, const RunResult& measured, int workers,
                           double step_bytes)
    : workers_(workers) {
  const TrainSettings settings = settings_of(network, run);
  check(!settings.overlap && !settings.stale && !settings.log_every,
        "step forecast: found --overlap, --stale or --log-every, expected a run without them");
  const auto model = trainer::make_model(network.application(), settings);
  method_ = settings.method;
  local_steps_ = settings.local_steps;
  const auto steps = static_cast<double>(run.steps);
  const TimeShares time = measured.time.value_or(TimeShares());
  computation_ = (measured.seconds - time.encode - time.decode) / steps;

  const double rounds = steps / round_steps();
  const CodecCost cost = cost_of(plans(*model, settings, static_cast<int>(settings.workers.value_or(1))),
                                 time.encode / rounds, time.decode / rounds);
  double planned = 0;
  for (const ExchangePlan& plan : plans(*model, settings, workers)) {
    messages_.push_back({plan, cost});
    planned += plan.sent_by_first();
  }
  // The sizes of some codes vary, and independent subnets can be coded. So the bytes that were sent count.
  for (PlannedMessage& message : messages_)
    for (ExchangePhase& phase : message.plan.phases)
      if (phase.payload && planned > 0) phase.wire.busiest *= round_steps() * step_bytes / planned;
}

double StepForecast::seconds(const LinkCost& link) const {
  return computation_ + advise::loss_wait(method_, local_steps_, link, workers_, computation_) +
         round_time(messages_, link).total() / round_steps();
}

}  // namespace tern::reproduce
