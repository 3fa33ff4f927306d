#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/layers/initialize.h"
#include "tern/networks/mlp.h"
#include "tern/optim/sgd.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {

using Values = std::map<std::string, std::vector<double>>;

inline Values values_of(const StateDict& state) {
  Values values;
  for (const auto& [name, tensor] : state) values[name] = tensor.to_vector<double>();
  return values;
}

inline StateDict clone_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, tensor] : state) copy.add(name, tensor.clone());
  return copy;
}

/// A small perceptron and its independent subnets on one rank. The examples depend on rank and step alone.
struct SubnetTrainer {
  static networks::Mlp::Options shape() { return {.widths = {6, 11, 9, 3}}; }

  SubnetTrainer(Communicator& communicator, const IndependentSubnets::Options& options, uint64_t seed = 5,
                double momentum = 0.9)
      : model(shape()), rank(communicator.rank()) {
    model.initialize(seed);
    local = std::make_unique<Sgd>(model.parameters(), Sgd::Options{.lr = 0.1, .momentum = momentum});
    subnets =
        std::make_unique<IndependentSubnets>(model, *local, communicator, model.subnet_plan(SubnetScope::fc), options);
  }

  static void learn(Layer& model, DistributedOptimizer& method, int rank, int64_t step) {
    const Tensor x = Tensor::empty({8, 6});
    const RandomKey key = {.seed = 2, .owner = static_cast<uint32_t>(rank), .step = static_cast<uint32_t>(step)};
    normal(1)(x, RandomStream(key));
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < 8; ++i) labels.push_back(x.data<float>()[6 * i] > 0 ? 1 : x.data<float>()[6 * i + 1] > 0);
    method.begin_step(step);
    model.zero_gradients();
    cross_entropy(model(x), Tensor::from<int64_t>({8}, labels)).backward();
    method.step();
  }
  void train(int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) learn(model, *subnets, rank, step);
  }
  Values whole() {
    subnets->consolidate();
    return values_of(model.state());
  }

  networks::Mlp model;
  int rank;
  std::unique_ptr<Sgd> local;
  std::unique_ptr<IndependentSubnets> subnets;
};

/// Runs `body(communicator)` on each rank, and returns the results. Expects that no rank throws.
inline std::vector<Values> on_all(Transports transports, const std::function<Values(Communicator&)>& body) {
  std::vector<Values> values(transports.size());
  const auto errors = with_communicators(std::move(transports),
                                         [&](Communicator& c) { values[static_cast<size_t>(c.rank())] = body(c); });
  for (const auto& error : errors) EXPECT_EQ(error, "");
  return values;
}
inline std::vector<Values> on_all(int ranks, const std::function<Values(Communicator&)>& body) {
  return on_all(make_in_process(ranks, {}), body);
}

}  // namespace tern::test
