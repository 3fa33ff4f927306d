#include "tern/apps/reproduce/ist_costs.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "tern/autograd/functional.h"
#include "tern/core/parallel.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/layers/containers.h"
#include "tern/layers/linear.h"
#include "tern/optim/sgd.h"
#include "tern/trainer/job/launch.h"

namespace tern::reproduce {

using namespace trainer;

double IstCosts::weights() const {
  double sum = 0;
  for (size_t i = 1; i < widths.size(); ++i) sum += static_cast<double>(widths[i - 1] * widths[i]);
  return sum;
}

double IstCosts::outer_weights() const {
  const size_t last = widths.size() - 1;
  return static_cast<double>(widths[0] * widths[1] + widths[last - 1] * widths[last]);
}

double IstCosts::subnet_weights(int64_t n) const {
  return outer_weights() + (weights() - outer_weights()) / static_cast<double>(n);
}

namespace {

/// A perceptron without biases: matrices with ReLU between them.
struct Matrices final : Layer {
  explicit Matrices(const std::vector<int64_t>& widths) {
    for (size_t i = 1; i < widths.size(); ++i)
      layers.append<Linear>({.in = widths[i - 1], .out = widths[i], .bias = false, .relu = i + 1 < widths.size()});
    initialize(1);
  }
  Variable forward(const Variable& x) override { return layers(x); }

  SubnetPlan subnet_plan() {
    SubnetPlan plan;
    const auto names = parameters();
    for (size_t i = 1; i < names.size(); ++i)
      plan.layers.push_back({.name = names[i].name, .indices = {{names[i - 1].name, 0}, {names[i].name, 1}}});
    return plan;
  }

  Sequential& layers = add<Sequential>("layers");
};

void learn(Matrices& model, DistributedOptimizer& method, const IstCosts& costs, int64_t examples, int64_t step) {
  const Tensor x = Tensor::empty({examples, costs.widths.front()});
  normal(1)(x, RandomStream({.seed = 1, .step = static_cast<uint32_t>(step)}));
  std::vector<int64_t> labels(static_cast<size_t>(examples));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i) % costs.widths.back();
  method.begin_step(step);
  model.zero_gradients();
  cross_entropy(model(x), Tensor::from<int64_t>({examples}, labels)).backward();
  method.step();
}

/// The counts of one worker.
struct Counted {
  double parallel_bytes = 0, ist_bytes = 0;  ///< bytes received in one step, and in one round
  double subnet_weights = 0;
};

double count_parallel(const IstCosts& costs, Communicator& communicator) {
  Matrices model(costs.widths);
  Sgd optimizer(model.parameters(), {});
  DataParallel method(model, optimizer, communicator, {.check_every = 0});
  const Traffic before = communicator.traffic();
  learn(model, method, costs, std::max<int64_t>(costs.batch / communicator.size(), 1), 0);
  return static_cast<double>((communicator.traffic() - before).received_payload);
}

Counted count_subnets(const IstCosts& costs, Communicator& communicator, const StudyProgress& progress) {
  Matrices model(costs.widths);
  Sgd optimizer(model.parameters(), {});
  IndependentSubnets method(model, optimizer, communicator, model.subnet_plan(),
                            {.local_steps = costs.local_steps,
                             .exchange = SubnetExchange::coordinator,  // as in the formulas
                             .check_every = 0});
  Counted counted;
  const Traffic before = communicator.traffic();
  for (int64_t step = 0; step < costs.local_steps; ++step) {
    learn(model, method, costs, costs.batch, step);
    if (communicator.rank() == 0) progress(step);
  }
  counted.ist_bytes = static_cast<double>((communicator.traffic() - before).received_payload);
  counted.subnet_weights = static_cast<double>(model.parameter_count());
  return counted;
}

}  // namespace

Numbers count_ist_costs(const IstCosts& costs, int workers, const StudyProgress& progress) {
  std::vector<Counted> counted(static_cast<size_t>(workers));
  run_rank_threads(workers, std::max(1, thread_count() / workers), [&](std::unique_ptr<Transport> transport) {
    TransportCommunicator communicator(std::move(transport));
    const double parallel_bytes = count_parallel(costs, communicator);
    Counted& own = counted[static_cast<size_t>(communicator.rank())];
    own = count_subnets(costs, communicator, progress);
    own.parallel_bytes = parallel_bytes;
  });
  const auto sum = [&](double Counted::*field) {
    return std::accumulate(counted.begin(), counted.end(), 0.0,
                           [&](double before, const Counted& own) { return before + own.*field; });
  };
  constexpr double kBytesOfBothWays = 2 * sizeof(float);
  return {{"parallel_floats", {sum(&Counted::parallel_bytes) / kBytesOfBothWays}},
          {"ist_floats", {sum(&Counted::ist_bytes) / kBytesOfBothWays / static_cast<double>(costs.local_steps)}},
          {"ist_operations", {4 * static_cast<double>(costs.batch) * sum(&Counted::subnet_weights)}}};
}

}  // namespace tern::reproduce
