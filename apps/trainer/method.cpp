#include "tern/apps/trainer/method.h"

#include "tern/core/error.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/dist/methods/local_sgd.h"

namespace tern {
namespace {

AveragingOptions averaging_options(const TrainSettings& s) {
  return {.codec = s.codec,
          .codecs = s.codecs,
          .exchange = s.exchange,
          .fusion = {.min_compress = s.min_compress, .keep_float = s.keep_float},
          .seed = static_cast<uint64_t>(s.seed),
          .overlap = s.overlap};
}

IndependentSubnets::Options subnet_options(const TrainSettings& s) {
  return {.local_steps = s.local_steps,
          .seed = static_cast<uint64_t>(s.seed),
          .exchange = s.exchange == "peer" ? SubnetExchange::peer : SubnetExchange::coordinator,
          .momentum = s.ist_momentum == "drop" ? SubnetMomentum::drop : SubnetMomentum::travel,
          .check_every = s.check_every,
          .codec = s.codec,
          .codecs = s.codecs};
}

SubnetPlan plan_of(const Module& model, const TrainSettings& s) {
  const auto* sliced = dynamic_cast<const SubnetModel*>(&model);
  check_input(sliced != nullptr, "--method ist: this model does not say how it is cut into subnets");
  const SubnetPlan plan = sliced->subnet_plan(s.ist_scope == "fc" ? SubnetScope::fc : SubnetScope::filters);
  const bool fc = s.ist_scope == "fc";
  check_input(!plan.layers.empty(), "--ist-scope ", s.ist_scope, ": this model has no ",
              fc ? "neurons between linear layers" : "filters that can be sliced", "; expected ",
              fc ? "filters" : "fc");
  return plan;
}

}  // namespace

std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& s, Module& model, Optimizer& local,
                                                  Communicator* communicator) {
  if (!communicator) return std::make_unique<DistributedOptimizer>(model, local);
  if (s.method == "local-sgd")
    return std::make_unique<LocalSgd>(
        model, local, *communicator,
        LocalSgd::Options{
            .local_steps = s.local_steps, .averaging = averaging_options(s), .check_every = s.check_every});
  if (s.method == "ist")
    return std::make_unique<IndependentSubnets>(model, local, *communicator, plan_of(model, s), subnet_options(s));
  return std::make_unique<DataParallel>(
      model, local, *communicator,
      DataParallel::Options{.averaging = averaging_options(s),
                            .weight_decay_in_gradient = s.weight_decay_in_gradient ? s.weight_decay : 0,
                            .check_every = s.check_every});
}

}  // namespace tern
