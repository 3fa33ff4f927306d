#pragma once

#include <functional>
#include <memory>

#include "tern/autograd/functional.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/optim/sgd.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {

/// Two layers without batch norm. So the gradient of a batch is the mean of the gradients of its parts.
struct SmallNet final : Layer {
  Variable forward(const Variable& x) override { return last(first(x)); }
  Linear& first = add<Linear>("first", {.in = 20, .out = 33, .relu = true});
  Linear& last = add<Linear>("last", {.in = 33, .out = 5});
};

/// A convolutional network without batch norm, for images [N, 1, 4, 5].
struct SmallConvNet final : Layer {
  Variable forward(const Variable& x) override {
    return last(flatten(second(first(Variable(x.value().reshape({-1, 1, 4, 5}))))));
  }
  Conv2d& first = add<Conv2d>("first", {.in = 1, .out = 6, .padding = 1, .relu = true});
  Conv2d& second = add<Conv2d>("second", {.in = 6, .out = 7, .relu = true});
  Linear& last = add<Linear>("last", {.in = 7 * 2 * 3, .out = 5});
};

/// A network with every kind of state: momentum, and statistics that only the forward pass changes.
struct NormalizedNet final : Layer {
  Variable forward(const Variable& x) override { return last(norm(first(x))); }
  Linear& first = add<Linear>("first", {.in = 20, .out = 9, .relu = true});
  BatchNorm1d& norm = add<BatchNorm1d>("norm", {.features = 9});
  Linear& last = add<Linear>("last", {.in = 9, .out = 5});
};

struct SmallBatch {
  Tensor x, labels;
};

/// Samples [begin, end) of a step's batch.
inline SmallBatch small_batch(int64_t step, int64_t begin, int64_t end) {
  SmallBatch batch = {Tensor::empty({end - begin, 20}), Tensor::empty({end - begin}, {.dtype = DType::i64})};
  const RandomStream random({.seed = 3, .step = static_cast<uint32_t>(step)});
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t k = 0; k < 20; ++k)
      batch.x.data<float>()[(i - begin) * 20 + k] = random.normal(static_cast<uint64_t>(i * 20 + k));
    batch.labels.data<int64_t>()[i - begin] = i % 5;
  }
  return batch;
}

/// Does forward, backward and the step on this rank's share of a batch of 24.
inline void small_step(Layer& model, Optimizer& local, DistributedOptimizer& optimizer, int64_t step, int rank,
                       int ranks) {
  const SmallBatch batch = small_batch(step, 24 * rank / ranks, 24 * (rank + 1) / ranks);
  optimizer.begin_step(step);
  local.zero_gradients();
  cross_entropy(model(Variable(batch.x)), batch.labels).backward();
  optimizer.step();
}

/// All parameters in one vector.
inline std::vector<float> parameters_of(Module& model) {
  std::vector<float> all;
  for (const auto& [name, parameter] : model.parameters()) {
    const auto values = parameter->value().to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// Parameters and buffers in one vector.
inline std::vector<double> state_of(Module& model) {
  std::vector<double> all;
  for (const auto& [name, tensor] : model.state()) {
    const auto values = tensor.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// The objects of one rank that trains.
struct RankTraining {
  Communicator& communicator;
  Layer& model;
  Sgd& local;

  /// Computes the gradients of this rank's share, and does no step.
  void backward(int64_t step) const {
    const int rank = communicator.rank(), ranks = communicator.size();
    const SmallBatch batch = small_batch(step, 24 * rank / ranks, 24 * (rank + 1) / ranks);
    local.zero_gradients();
    cross_entropy(model(Variable(batch.x)), batch.labels).backward();
  }
  void steps(DistributedOptimizer& optimizer, int64_t begin, int64_t end) const {
    for (int64_t step = begin; step < end; ++step)
      small_step(model, local, optimizer, step, communicator.rank(), communicator.size());
  }
};

inline constexpr Sgd::Options kSmallSgd = {.lr = 0.1, .momentum = 0.9};

/// Trains on every rank with `body(RankTraining)`. Returns the parameters of each rank.
template <class Net = SmallNet, class Body>
std::vector<std::vector<float>> train_on_ranks(Transports transports, const Body& body) {
  std::vector<std::vector<float>> results(transports.size());
  const auto errors = with_communicators(std::move(transports), [&](Communicator& c) {
    Net model;
    model.initialize(1);
    Sgd local(model.parameters(), kSmallSgd);
    body(RankTraining{c, model, local});
    results[static_cast<size_t>(c.rank())] = parameters_of(model);
  });
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
  return results;
}

using MakeOptimizer = std::unique_ptr<Optimizer> (*)(Module& model);
inline std::unique_ptr<Optimizer> small_sgd(Module& model) {
  return std::make_unique<Sgd>(model.parameters(), kSmallSgd);
}

/// SmallNets that train alone on their ranks' batches, one after the other, with an optimizer each: what a method does
/// between two exchanges.
struct AloneTraining {
  explicit AloneTraining(int ranks, MakeOptimizer make = small_sgd) {
    for (int rank = 0; rank < ranks; ++rank) {
      models.push_back(std::make_unique<SmallNet>());
      models.back()->initialize(1);
      optimizers.push_back(make(*models.back()));
    }
  }
  void step(int64_t step) const {
    for (size_t rank = 0; rank < models.size(); ++rank) {
      DistributedOptimizer alone(*models[rank], *optimizers[rank]);
      small_step(*models[rank], *optimizers[rank], alone, step, static_cast<int>(rank),
                 static_cast<int>(models.size()));
    }
  }

  std::vector<std::unique_ptr<SmallNet>> models;
  std::vector<std::unique_ptr<Optimizer>> optimizers;
};

/// Trains NormalizedNets for `steps` steps with a method of its own for each rank. `make` makes it from model,
/// optimizer and communicator. After `stop` steps everything goes on in new objects, from the states of the old ones;
/// 0: never. Returns each rank's `state_of`.
template <class Make>
std::vector<std::vector<double>> train_with_stop(Transports transports, int64_t stop, int64_t steps, const Make& make) {
  std::vector<std::vector<double>> results(transports.size());
  train_on_ranks<NormalizedNet>(std::move(transports), [&](const RankTraining& rank) {
    const auto before = make(rank.model, rank.local, rank.communicator);
    auto& result = results[static_cast<size_t>(rank.communicator.rank())];
    rank.steps(*before, 0, stop == 0 ? steps : stop);
    if (stop == 0) {
      result = state_of(rank.model);
      return;
    }
    before->consolidate();
    const StateDict method = before->state();
    NormalizedNet model;
    model.initialize(77);
    model.load_state(rank.model.state());
    Sgd local(model.parameters(), kSmallSgd);
    local.load_state(rank.local.state());
    const auto after = make(model, local, rank.communicator);
    after->load_state(method, stop);
    after->consolidate();  // as a run does that evaluates before its first step
    EXPECT_EQ(state_of(model), state_of(rank.model));
    RankTraining{rank.communicator, model, local}.steps(*after, stop, steps);
    result = state_of(model);
  });
  return results;
}

}  // namespace tern::test
