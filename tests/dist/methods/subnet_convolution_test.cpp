#include <gtest/gtest.h>

#include "tern/networks/lenet.h"
#include "tern/networks/resnet.h"
#include "tests/dist/methods/subnet_job.h"
#include "tests/support/cuda.h"

namespace tern::test {
namespace {

/// Trains a convolutional network for two rounds on images of random numbers.
template <class Model>
std::vector<Values> convolved(const typename Model::Options& options, const Shape& images, SubnetScope scope,
                              SubnetExchange exchange, Device device = {}) {
  return on_all(3, [&](Communicator& c) {
    Model model(options);
    model.initialize(5, DType::f32, device);
    Sgd optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
    IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(scope), {.local_steps = 2, .exchange = exchange});
    for (int64_t step = 0; step < 4; ++step) {
      const Tensor x = Tensor::empty(images);
      normal(1)(x, RandomStream({.seed = 2, .owner = static_cast<uint32_t>(c.rank())}));
      subnets.begin_step(step);
      model.zero_gradients();
      const Tensor labels = Tensor::from<int64_t>({2}, std::vector<int64_t>{step, 7});
      cross_entropy(model(x.to(MemoryFormat::channels_last).to(device)), labels.to(device)).backward();
      subnets.step();
    }
    subnets.consolidate();
    return values_of(model.state());
  });
}

template <class Model>
void expect_the_same_between_peers(const typename Model::Options& options, const Shape& images, SubnetScope scope) {
  const auto coordinated = convolved<Model>(options, images, scope, SubnetExchange::coordinator);
  EXPECT_EQ(coordinated[2], coordinated[0]);
  EXPECT_EQ(convolved<Model>(options, images, scope, SubnetExchange::peer), coordinated);
  Model before(options);
  before.initialize(5);
  const Values untrained = values_of(before.state());
  for (const auto& [name, values] : coordinated[0])
    EXPECT_NE(values, untrained.at(name)) << name << " has not been trained";
}

TEST(IndependentSubnets, TrainTheConnectedPartOfLeNet) {
  expect_the_same_between_peers<networks::LeNet>({}, {2, 1, 28, 28}, SubnetScope::fc);
}
TEST(IndependentSubnets, TrainTheFiltersOfLeNet) {
  expect_the_same_between_peers<networks::LeNet>({}, {2, 1, 28, 28}, SubnetScope::filters);
}
TEST(IndependentSubnets, TrainTheInnerChannelsOfResidualBlocks) {
  expect_the_same_between_peers<networks::ResNet>({.depth = 18, .width = 4}, {2, 3, 16, 16}, SubnetScope::filters);
}

TEST(CudaSubnets, CutFiltersAsTheCpu) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  for (const SubnetExchange exchange : {SubnetExchange::coordinator, SubnetExchange::peer}) {
    const auto train = [&](Device device) {
      return convolved<networks::LeNet>({}, {2, 1, 28, 28}, SubnetScope::filters, exchange, device)[1];
    };
    const Values expected = train({}), found = train({DeviceType::cuda, 0});
    for (const auto& [name, values] : expected)
      for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(found.at(name)[i], values[i], 1e-4) << name << " " << i;
  }
}

}  // namespace
}  // namespace tern::test
