#include "tern/apps/advise/forecast.h"

#include <algorithm>
#include <functional>

#include "tern/apps/advise/measure.h"
#include "tern/core/error.h"
#include "tern/dist/cost/round_time.h"
#include "tern/dist/cost/subnet_round.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/demo.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/dist/methods/replicas.h"

namespace tern::advise {
namespace {

constexpr const char* kCodecs[] = {
    kFloats, "bf16", "ternary", "qsgd:bits=4", "onebit", "hadamard:bits=2", "error-feedback:topk:ratio=0.01"};

bool fits(const std::string& exchange, const std::string& codec) {
  if ((codec == "ternary" && exchange == "reduce-scatter") || exchange == "allgather-sent") return false;
  try {
    check_exchange(exchange, *make_codec(codec));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Neurons, or filters, of the narrowest layer that can be cut; 0 if there is none.
int64_t narrowest_layer(Module& model, SubnetScope scope) {
  const auto* sliced = dynamic_cast<const SubnetModel*>(&model);
  if (sliced == nullptr) return 0;
  const SubnetPlan plan = sliced->subnet_plan(scope);
  return plan.layers.empty() ? 0 : std::ranges::min(SubnetCuts(plan, model).widths());
}

/// The cost of a message on `link`. No network is faster than the ranks of one machine are with each other, `here`.
LinkCost cost_of(const Link& link, const LinkCost& here) {
  const LinkCost network = tern::cost_of(link);
  return {.hop = here.hop + network.hop, .byte = std::max(here.byte, network.byte)};
}

/// A meeting of NoLoCo: each rank sends its model to its partner.
ExchangePlan plan_meeting(std::span<const AveragedTensor> tensors, int workers) {
  int64_t bytes = 0;
  for (const AveragedTensor& tensor : tensors) bytes += 4 * tensor.elements;
  const int64_t meeting = workers / 2 * 2;
  const double mean = static_cast<double>(meeting * bytes) / workers;  // who stays alone changes from round to round
  return {{{.wire = {.busiest = static_cast<double>(bytes), .hops = 1, .sent = meeting * bytes, .first = mean}}}};
}

}  // namespace

bool Forecast::surely_faster(const Forecast& other) const {
  return std::ranges::equal(passes, other.passes, std::less<>());
}

Way way_of(const TrainSettings& settings, int workers) {
  Way way = {settings.method, settings.codec, settings.exchange, settings.overlap, settings.ist_scope};
  if (way.takes_exchange() && way.exchange.empty())
    way.exchange = way.method == TrainingMethod::ist ? to_string(IndependentSubnets::Options().exchange)
                                                     : default_exchange(*make_codec(way.codec), workers);
  return way;
}

PlannedRound plan_round(Module& model, const Way& way, int workers) {
  std::vector<AveragedTensor> tensors = averaged_parameters(model, to_string(way.method));
  std::vector<Shape> shapes;
  for (const auto& [name, parameter] : model.trained_parameters()) shapes.push_back(parameter->value().shape());
  if (!traits_of(way.method).every_step)
    for (const auto& [name, buffer] : floating_buffers(model)) {
      tensors.push_back({name, buffer->numel(), false});
      shapes.push_back(buffer->shape());
    }
  PlannedRound round;
  if (way.method == TrainingMethod::noloco) {
    round.messages.push_back({plan_meeting(tensors, workers), {}, {}, {}});
    return round;
  }
  AveragingOptions averaging = {.codec = way.codec, .exchange = way.exchange};
  if (way.method == TrainingMethod::demo) averaging = DeMo::averaging({});
  const bool one_kind = codes_nothing(*make_codec(averaging.codec), averaging.exchange);
  for (const FusedMessage& message : fuse(tensors, averaging.fusion, one_kind)) {
    const std::string codec = message.coded ? averaging.codec : kFloats,
                      exchange(message.coded ? averaging.exchange : kFloatExchange);
    const auto coder = make_codec(codec);
    std::vector<Shape> members;
    for (const size_t i : message.members) members.push_back(shapes[i]);
    round.messages.push_back(
        {plan_exchange(exchange, *coder, coded_tensors(*coder, members), workers), codec, exchange, message.members});
  }
  return round;
}

double PlannedRound::sent(int workers) const {
  double bytes = 0;
  for (const Message& message : messages) bytes += static_cast<double>(message.plan.sent()) / workers;
  return bytes;
}

double loss_wait(TrainingMethod method, int64_t local_steps, const LinkCost& link, int workers, double compute) {
  constexpr int64_t kBytes = 4 * 8;      // of a step: loss, signal, and the two parts of a score
  constexpr double kBackward = 2.0 / 3;  // of the products of a step
  const int64_t steps = steps_of_a_sum(method, local_steps);
  const double left = link.seconds(all_reduce_load(steps * kBytes, workers)) - kBackward * compute;
  return std::max(0.0, left) / static_cast<double>(steps);
}

Forecaster::Forecaster(Workbench& workbench, const Link& link, int64_t local_steps)
    : workbench_(workbench),
      local_steps_(local_steps),
      measured_{workbench.step_seconds(), loopback_cost(workbench.options().seconds)},
      link_(cost_of(link, measured_.here)) {}

std::vector<Way> Forecaster::ways(int workers) {
  std::vector<Way> all;
  for (const char* codec : kCodecs)
    for (const std::string& exchange : exchange_names())
      for (const bool overlap : {false, true})
        if (fits(exchange, codec)) all.push_back({TrainingMethod::data_parallel, codec, exchange, overlap});
  for (const char* codec : {kFloats, "ternary", "qsgd:bits=4", "hadamard:bits=2"})
    all.push_back({TrainingMethod::local_sgd, codec, default_exchange(*make_codec(codec), workers)});
  all.push_back({TrainingMethod::demo});
  all.push_back({TrainingMethod::noloco});
  for (const TrainingMethod method : {TrainingMethod::diloco, TrainingMethod::sparseloco}) {
    const char* const codec = traits_of(method).codec;
    all.push_back({method, codec, default_exchange(*make_codec(codec), workers)});
  }
  for (const SubnetScope scope : {SubnetScope::fc, SubnetScope::filters})
    if (narrowest_layer(workbench_.model(), scope) >= workers)
      all.push_back({TrainingMethod::ist, kFloats, to_string(IndependentSubnets::Options().exchange), false, scope});
  return all;
}

Forecast Forecaster::forecast(const Way& way, int workers) {
  if (way.method == TrainingMethod::ist) return subnets(way, workers);
  const PlannedRound planned = plan_round(workbench_.model(), way, workers);
  const double compute = way.method == TrainingMethod::demo ? demo().compute : measured_.compute;
  const double steps = traits_of(way.method).every_step ? 1 : static_cast<double>(local_steps_);
  Forecast forecast = {way, compute, round(way, planned) / steps, planned.sent(workers) / steps};
  forecast.exchange.wait += loss_wait(way.method, local_steps_, link_, workers, compute);
  if (traits_of(way.method).every_step) return forecast;
  if (!change_) change_ = workbench_.change_seconds();
  forecast.compute += *change_ / steps;
  return forecast;
}

ExchangeTimes Forecaster::round(const Way& way, const PlannedRound& planned) {
  std::vector<PlannedMessage> messages;
  for (const auto& message : planned.messages) {
    CodecCost cost = {};  // NoLoCo has no codec
    if (way.method == TrainingMethod::demo) cost = demo().codec;
    if (way.takes_exchange()) cost = measured(message.codec, message.exchange);
    messages.push_back({message.plan, cost});
  }
  if (!way.overlap) return round_time(messages, link_);
  if (!ready_) ready_ = workbench_.ready_seconds();
  OverlappedStep step = {.compute = measured_.compute, .ready = {}, .threads = workbench_.options().threads};
  double ready = 0;  // a message also waits for those before it
  for (const auto& message : planned.messages) {
    for (const size_t i : message.members) ready = std::max(ready, ready_->at(i));
    step.ready.push_back(std::min(ready, step.compute));
  }
  return overlapped_round_time(messages, link_, step);
}

CodecCost Forecaster::measured(const std::string& codec, const std::string& exchange) {
  const auto known = codecs_.find({codec, exchange});
  if (known != codecs_.end()) return known->second;
  return codecs_[{codec, exchange}] = workbench_.codec(codec, exchange);
}

const Workbench::DeMoStep& Forecaster::demo() {
  if (!demo_) demo_ = workbench_.demo();
  return *demo_;
}

Forecast Forecaster::subnets(const Way& way, int workers) {
  Module& model = workbench_.model();
  const SubnetCuts cuts(dynamic_cast<SubnetModel&>(model).subnet_plan(way.scope), model);
  if (!slicing_.contains(way.scope)) slicing_[way.scope] = workbench_.slicing(way.scope);
  const auto compute = subnet_compute_.try_emplace({way.scope, workers}, -1).first;
  if (compute->second < 0) compute->second = workbench_.subnet_step_seconds(workers, way.scope);
  const auto steps = static_cast<double>(local_steps_);
  const ExchangePlan plan = plan_subnet_round(cuts, model.state(), {}, {.ranks = workers});
  const PlannedMessage message = {plan, slicing_.at(way.scope)};
  ExchangeTimes times = round_time({&message, 1}, link_) / steps;
  times.wait += loss_wait(way.method, local_steps_, link_, workers, compute->second);
  return {way, compute->second, times, static_cast<double>(plan.sent()) / workers / steps};
}

Forecast median_pass(std::span<const Forecast> forecasts) {
  std::vector<const Forecast*> order;
  for (const Forecast& forecast : forecasts) order.push_back(&forecast);
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::ranges::nth_element(order, middle, {}, &Forecast::seconds);
  Forecast median = **middle;
  for (const Forecast& forecast : forecasts) median.passes.push_back(forecast.seconds());
  return median;
}

Forecast median_forecast(std::span<Forecaster> passes, const Way& way, int workers) {
  std::vector<Forecast> forecasts;
  for (Forecaster& pass : passes) forecasts.push_back(pass.forecast(way, workers));
  return median_pass(forecasts);
}

}  // namespace tern::advise
