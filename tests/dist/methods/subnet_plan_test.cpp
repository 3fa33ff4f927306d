#include "tern/dist/methods/subnet_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/networks/lenet.h"
#include "tern/networks/mlp.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

struct Case {
  const char* name;
  std::unique_ptr<Layer> (*make)();
  SubnetScope scope;
};

template <class Model>
std::unique_ptr<Layer> make() {
  return std::make_unique<Model>(typename Model::Options{});
}

const Case kCases[] = {
    {"LeNetFc", make<networks::LeNet>, SubnetScope::fc},
    {"LeNetFilters", make<networks::LeNet>, SubnetScope::filters},
    {"CaffeLeNetFilters", make<networks::CaffeLeNet>, SubnetScope::filters},
    {"Mlp",
     [] {
       return std::unique_ptr<Layer>(new networks::Mlp({.widths = {9, 25, 13, 4}, .norm = networks::MlpNorm::none}));
     },
     SubnetScope::fc},
    {"MlpNorm",
     [] {
       return std::unique_ptr<Layer>(new networks::Mlp({.widths = {9, 25, 13, 4}, .norm = networks::MlpNorm::hidden}));
     },
     SubnetScope::fc},
    {"MlpAllNorm",
     [] {
       return std::unique_ptr<Layer>(new networks::Mlp({.widths = {9, 25, 13, 4}}));
     },
     SubnetScope::fc},
    {"ResNet", [] { return std::unique_ptr<Layer>(new networks::ResNet({.depth = 18, .width = 9})); },
     SubnetScope::filters},
    {"ResNetBlocks", [] { return std::unique_ptr<Layer>(new networks::ResNet({.depth = 32, .width = 4})); },
     SubnetScope::blocks},
};

class SubnetPlans : public testing::TestWithParam<Case> {
 protected:
  SubnetPlans() : model(GetParam().make()) { model->initialize(1); }
  SubnetCuts cuts() { return {dynamic_cast<const SubnetModel&>(*model).subnet_plan(GetParam().scope), *model}; }

  std::unique_ptr<Layer> model;
};

TEST_P(SubnetPlans, DealEveryNeuronToOneRankInSharesThatDifferByOne) {
  const SubnetCuts cuts = this->cuts();
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const SubnetParts parts = draw_subnets(cuts, ranks, 3, 7);
    ASSERT_EQ(parts.size(), cuts.widths().size());
    for (size_t layer = 0; layer < parts.size(); ++layer) {
      std::vector<int64_t> all;
      for (const auto& part : parts[layer]) {
        EXPECT_LE(std::abs(static_cast<int64_t>(part.size()) * ranks - cuts.widths()[layer]), ranks - 1);
        EXPECT_TRUE(std::ranges::is_sorted(part));
        all.insert(all.end(), part.begin(), part.end());
      }
      std::ranges::sort(all);
      for (int64_t neuron = 0; neuron < cuts.widths()[layer]; ++neuron)
        ASSERT_EQ(all.at(static_cast<size_t>(neuron)), neuron);
      EXPECT_EQ(static_cast<int64_t>(all.size()), cuts.widths()[layer]);
    }
  }
}

TEST_P(SubnetPlans, CutTensorsIntoPiecesThatMakeThemWholeAgain) {
  const SubnetCuts cuts = this->cuts();
  const int ranks = 3;
  const SubnetParts parts = draw_subnets(cuts, ranks, 3, 7);
  for (const auto& [name, tensor] : model->state()) {
    const TensorCut* cut = cuts.find(name);
    if (cut == nullptr) continue;
    // If both rows and columns are cut, only elements whose two neurons are on one rank take part.
    const bool both = cut->axes[0].layer >= 0 && cut->axes[1].layer >= 0;
    const Tensor merged = both ? tensor.clone() : Tensor::full(tensor.shape(), -7);
    int64_t taken = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      TensorSlice slice;
      if (cut->axes[0].layer >= 0) slice.rows = parts[cut->axes[0].layer][rank];
      if (cut->axes[1].layer >= 0) slice.columns = parts[cut->axes[1].layer][rank];
      slice.block = cut->axes[1].block;
      if (cut->neuron && !std::ranges::binary_search(*slice.rows, *cut->neuron))
        slice.rows->clear();
      else if (cut->neuron)
        slice.rows.reset();
      const Tensor narrow = take(tensor, slice);
      EXPECT_EQ(narrow.shape(), subnet_shape(*cut, tensor.shape(), parts, rank)) << name;
      put(narrow, slice, merged);
      taken += narrow.numel();
    }
    EXPECT_EQ(merged.to_vector<float>(), tensor.to_vector<float>()) << name;
    if (!both) {
      EXPECT_EQ(taken, tensor.numel()) << name;
    }
  }
}

TEST_P(SubnetPlans, MakeSubnetsThatTheModelRuns) {
  const SubnetCuts cuts = this->cuts();
  const SubnetParts parts = draw_subnets(cuts, 4, 3, 7);
  const Shape first = model->parameters().front().parameter->value().shape();
  Shape input = {2, first[1]};
  if (first.rank() == 4) input = {2, first[1], 28, 28};
  const Tensor x = Tensor::full(input, 0.5);
  const Shape whole = (*model)(x).shape();
  for (const auto& [name, parameter] : model->parameters())
    if (const TensorCut* cut = cuts.find(name))
      parameter->set_value(Tensor::full(subnet_shape(*cut, parameter->value().shape(), parts, 1), 0.01));
  for (const auto& [name, buffer] : model->buffers())
    if (const TensorCut* cut = cuts.find(name))
      *buffer = Tensor::full(subnet_shape(*cut, buffer->shape(), parts, 1), 1);
  EXPECT_EQ((*model)(x).shape(), whole);
}

INSTANTIATE_TEST_SUITE_P(Models, SubnetPlans, testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

TEST(SubnetParts, DependOnSeedRoundAndLayer) {
  networks::Mlp model({.widths = {3, 20, 20, 2}, .norm = networks::MlpNorm::none});
  model.initialize(1);
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
  const SubnetParts parts = draw_subnets(cuts, 2, 1, 0);
  EXPECT_EQ(draw_subnets(cuts, 2, 1, 0), parts);
  EXPECT_NE(draw_subnets(cuts, 2, 2, 0), parts);
  EXPECT_NE(draw_subnets(cuts, 2, 1, 1), parts);
  EXPECT_NE(parts[0], parts[1]);
}

TEST(SubnetParts, GiveEachRankEachNeuronEquallyOften) {
  networks::Mlp model({.widths = {1, 10, 1}, .norm = networks::MlpNorm::none});
  model.initialize(1);
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
  constexpr int kRounds = 10000;
  std::vector<int> found(10);
  for (uint32_t round = 0; round < kRounds; ++round) {
    const SubnetParts parts = draw_subnets(cuts, 5, 1, round);
    for (const int64_t neuron : parts[0][3]) ++found[static_cast<size_t>(neuron)];
  }
  // The count is binomial with p = 1/5. A deviation of 5σ = 200 in one of the ten counts has a chance of 6e-6.
  for (const int count : found) EXPECT_NEAR(count, kRounds / 5, 200);
}

TEST(SubnetPlan, HasResidualBlocksOnlyInAResidualNetwork) {
  EXPECT_EQ(networks::LeNet().subnet_plan(SubnetScope::blocks).layers.size(), 0u);
  const networks::Vgg vgg({.height = 32, .width = 32, .filters = 4, .hidden = 8});
  EXPECT_EQ(vgg.subnet_plan(SubnetScope::blocks).layers.size(), 0u);
  EXPECT_EQ(networks::ResNet({.depth = 20}).subnet_plan(SubnetScope::blocks).layers.size(), 1u);
}

TEST(SubnetParts, NeedANeuronForEachRank) {
  networks::Mlp model({.widths = {3, 20, 3, 2}, .norm = networks::MlpNorm::none});
  model.initialize(1);
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
  EXPECT_EQ(message_of<Error>([&] { draw_subnets(cuts, 4, 1, 0); }),
            "independent subnets: hidden layer 2 has 3 neurons for 4 ranks, expected as many or more");
  networks::LeNet convolutional;
  convolutional.initialize(1);
  const SubnetCuts filters(convolutional.subnet_plan(SubnetScope::filters), convolutional);
  EXPECT_EQ(message_of<Error>([&] { draw_subnets(filters, 21, 1, 0); }),
            "independent subnets: conv1 has 20 filters for 21 ranks, expected as many or more");
  networks::ResNet residual({.depth = 20});
  residual.initialize(1);
  const SubnetCuts blocks(residual.subnet_plan(SubnetScope::blocks), residual);
  EXPECT_EQ(message_of<Error>([&] { draw_subnets(blocks, 8, 1, 0); }),
            "independent subnets: the model has 7 residual blocks for 8 ranks, expected as many or more");
}

TEST(SubnetCuts, NameWhatDoesNotFitTheModel) {
  networks::LeNet model;
  model.initialize(1);
  const auto message = [&](std::vector<NeuronIndex> indices) {
    return message_of<Error>([&] { SubnetCuts(SubnetPlan{{{"fc1", std::move(indices)}}}, model); });
  };
  EXPECT_EQ(message({{"fc9.weight", 0}}), "subnet plan, fc1: the model has no 'fc9.weight'");
  EXPECT_EQ(message({{"fc1.weight", 0}, {"fc2.weight", 0}}),
            "subnet plan, fc1: 'fc2.weight' [10, 500] has 10 neurons along dimension 0, 'fc1.weight' has 500");
  EXPECT_EQ(message({{"fc1.weight", 1, 48}}),
            "subnet plan, fc1: blocks of 48 along dimension 1 of 'fc1.weight' [500, 2450]");
  EXPECT_EQ(message({{"fc1.bias", 1}}), "subnet plan, fc1: dimension 1 of 'fc1.bias' [500], expected 0 or 1");
  EXPECT_EQ(message({{"fc1.bias", 0}, {"fc1.bias", 0}}), "subnet plan, fc1: dimension 0 of 'fc1.bias' is cut twice");
  EXPECT_EQ(message({{.tensor = "fc1.weight", .dimension = 1}, {.tensor = "fc1.weight", .neuron = 0}}),
            "subnet plan, fc1: 'fc1.weight' belongs to neuron 0 and is cut, too");
  EXPECT_EQ(message_of<Error>([&] { SubnetCuts(SubnetPlan{}, model); }), "subnet plan: no layers");
}

TEST(TensorSlice, TakesRowsAndBlocksOfColumns) {
  std::vector<float> counted(24);
  for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<float>(i);
  const Tensor x = Tensor::from<float>({2, 6, 2}, counted);
  const Tensor y = take(x, {.rows = {{1}}, .columns = {{2, 0}}, .block = 2});
  EXPECT_EQ(y.shape(), (Shape{1, 4, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{20, 21, 22, 23, 12, 13, 14, 15}));
  EXPECT_EQ(message_of<Error>([&] { take(x, {.rows = {{2}}, .columns = {}}); }), "slice of [2, 6, 2]: index 2 of 2");
}

}  // namespace
}  // namespace tern
