#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "tern/networks/resnet.h"
#include "tests/dist/methods/subnet_job.h"

// Residual networks that plain loops cut into subnets, and merge again. Nothing of the plan, the slices or the store is
// used here, but the drawn numbers of the channels and blocks.

namespace tern::test {
namespace {

using networks::ResNet;
using Indices = std::vector<int64_t>;

/// Depth 18 has basic blocks, depth 50 has bottlenecks. Both have projections.
ResNet::Options small(int64_t depth) { return {.depth = depth, .width = 4, .classes = 5}; }

std::unique_ptr<ResNet> make(const ResNet::Options& options, DType dtype = DType::f32) {
  auto model = std::make_unique<ResNet>(options);
  model->initialize(5, dtype);
  return model;
}

Tensor images(int owner, int64_t step) {
  const Tensor x = Tensor::empty({4, 3, 16, 16});
  normal(1)(x, RandomStream({.seed = 2, .owner = static_cast<uint32_t>(owner), .step = static_cast<uint32_t>(step)}));
  return x.to(MemoryFormat::channels_last);
}

Variable loss_of(Layer& model, int owner, int64_t step, DType dtype = DType::f32) {
  return cross_entropy(model(images(owner, step).to(dtype)),
                       Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 1, 2, 3}));
}

/// What a subnet has of one tensor: some rows and columns. An absent list means all.
struct Cut {
  std::optional<Indices> rows, columns;
};
using Cuts = std::map<std::string, Cut>;

int64_t extent(const std::optional<Indices>& indices, int64_t whole) {
  return indices ? static_cast<int64_t>(indices->size()) : whole;
}

/// Calls touch(narrow element, wide element) for every element of the subnet's tensor. T is their type.
template <class T>
void visit(const Tensor& narrow, const Tensor& wide, const Cut& cut, const std::function<void(T&, T&)>& touch) {
  const int64_t columns = wide.rank() > 1 ? wide.size(1) : 1, pixels = wide.numel() / wide.size(0) / columns;
  const int64_t narrow_columns = extent(cut.columns, columns);
  for (int64_t i = 0; i < extent(cut.rows, wide.size(0)); ++i)
    for (int64_t j = 0; j < narrow_columns; ++j)
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t row = cut.rows ? (*cut.rows)[static_cast<size_t>(i)] : i;
        const int64_t column = cut.columns ? (*cut.columns)[static_cast<size_t>(j)] : j;
        touch(narrow.data<T>()[(i * narrow_columns + j) * pixels + p],
              wide.data<T>()[(row * columns + column) * pixels + p]);
      }
}

template <class T>
Tensor taken(const Tensor& wide, const Cut& cut) {
  Shape shape = wide.shape();
  shape[0] = extent(cut.rows, shape[0]);
  if (shape.rank() > 1) shape[1] = extent(cut.columns, shape[1]);
  const Tensor narrow = Tensor::empty(shape, {.dtype = wide.dtype()});
  visit<T>(narrow, wide, cut, [](T& mine, T& theirs) { mine = theirs; });
  return narrow;
}

/// The cuts of one rank's subnet, from the channels of every layer of inner channels in the order of the network.
Cuts filter_cuts(ResNet& model, const SubnetParts& parts, int rank) {
  Cuts cuts;
  size_t layer = 0;
  for (const auto& [block, passes_x] : model.blocks)
    for (int first = 1; first < (model.stages.bottleneck ? 3 : 2); ++first, ++layer) {
      const Indices& channels = parts.at(layer).at(static_cast<size_t>(rank));
      cuts[join({block, ".conv", first, ".weight"})].rows = channels;
      cuts[join({block, ".conv", first + 1, ".weight"})].columns = channels;
      for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
        cuts[join({block, ".bn", first, ".", tensor})].rows = channels;
    }
  EXPECT_EQ(layer, parts.size());
  return cuts;
}

/// The same if whole blocks are dealt out: all rows of the rank's blocks, and no rows of the others.
Cuts block_cuts(ResNet& model, const SubnetParts& parts, int rank) {
  Cuts cuts;
  const StateDict state = model.state();
  const Indices& mine = parts.at(0).at(static_cast<size_t>(rank));
  int64_t number = 0;
  for (const auto& [block, passes_x] : model.blocks) {
    if (!passes_x) continue;
    const bool has = std::ranges::find(mine, number++) != mine.end();
    for (int i = 1; i <= (model.stages.bottleneck ? 3 : 2); ++i)
      for (const auto& [layer, tensor] : {std::pair{"conv", "weight"},
                                          {"bn", "weight"},
                                          {"bn", "bias"},
                                          {"bn", "running_mean"},
                                          {"bn", "running_var"}}) {
        const std::string name = join({block, ".", layer, i, ".", tensor});
        Indices& rows = cuts[name].rows.emplace();
        for (int64_t row = 0; has && row < state.at(name).size(0); ++row) rows.push_back(row);
      }
  }
  return cuts;
}

Cuts cuts_of(ResNet& model, SubnetScope scope, const SubnetParts& parts, int rank) {
  return scope == SubnetScope::filters ? filter_cuts(model, parts, rank) : block_cuts(model, parts, rank);
}

/// A model of its own with one rank's part of `whole`.
template <class T>
std::unique_ptr<ResNet> subnet_of(ResNet& whole, const ResNet::Options& options, const Cuts& cuts) {
  auto subnet = make(options, dtype_of<T>);
  const StateDict wide = whole.state();
  const auto part = [&](const std::string& name) {
    const auto cut = cuts.find(name);
    return cut == cuts.end() ? wide.at(name).clone() : taken<T>(wide.at(name), cut->second);
  };
  for (const auto& [name, parameter] : subnet->parameters()) parameter->set_value(part(name));
  for (const auto& [name, buffer] : subnet->buffers()) *buffer = part(name);
  return subnet;
}

/// Makes `whole` compute what the subnet computes: the weights of the channels and the last normalisations of the
/// blocks that the subnet does not have become zero.
template <class T>
void silence_the_rest(ResNet& whole, SubnetScope scope, const Cuts& cuts) {
  const StateDict state = whole.state();
  const std::string last = whole.stages.bottleneck ? "bn3" : "bn2";
  for (const auto& [name, cut] : cuts) {
    const Tensor& tensor = state.at(name);
    if (scope == SubnetScope::blocks) {
      if (cut.rows->empty() && (name.ends_with(last + ".weight") || name.ends_with(last + ".bias"))) tensor.fill(0);
    } else if (cut.columns) {
      const Tensor kept = taken<T>(tensor, {.rows = {}, .columns = cut.columns});
      tensor.fill(0);
      visit<T>(kept, tensor, {.rows = {}, .columns = cut.columns}, [](T& mine, T& theirs) { theirs = mine; });
    }
  }
}

struct Case {
  int64_t depth;
  SubnetScope scope;
};
constexpr Case kCases[] = {
    {18, SubnetScope::filters}, {50, SubnetScope::filters}, {18, SubnetScope::blocks}, {50, SubnetScope::blocks}};

TEST(SubnetsByHand, ComputeWhatTheWholeNetworkComputesWithoutTheRestSlow) {
  for (const auto& [depth, scope] : kCases) {
    const auto numbers = make(small(depth)), whole = make(small(depth), DType::f64);
    const SubnetParts parts = draw_subnets(SubnetCuts(numbers->subnet_plan(scope), *numbers), 2, 1, 0);
    const Cuts cuts = cuts_of(*whole, scope, parts, 1);
    const auto subnet = subnet_of<double>(*whole, small(depth), cuts);
    EXPECT_LT(subnet->parameter_count(), whole->parameter_count());
    silence_the_rest<double>(*whole, scope, cuts);
    const Variable narrow_loss = loss_of(*subnet, 0, 0, DType::f64), wide_loss = loss_of(*whole, 0, 0, DType::f64);
    EXPECT_NEAR(narrow_loss.value().item(), wide_loss.value().item(), 1e-12) << depth;
    narrow_loss.backward();
    wide_loss.backward();
    std::map<std::string, Parameter*> wide;
    for (const auto& [name, parameter] : whole->parameters()) wide[name] = parameter;
    for (const auto& [name, parameter] : subnet->parameters()) {
      if (parameter->value().numel() == 0) continue;
      const auto cut = cuts.find(name);
      double most = 0, apart = 0;
      visit<double>(parameter->gradient(), wide.at(name)->gradient(), cut == cuts.end() ? Cut{} : cut->second,
                    [&](double& mine, double& theirs) {
                      most = std::max(most, std::abs(theirs));
                      apart = std::max(apart, std::abs(mine - theirs));
                    });
      EXPECT_GT(most, 0) << depth << ' ' << name;
      EXPECT_LE(apart, 1e-9 * most) << depth << ' ' << name;
    }
  }
}

TEST(SubnetsByHand, OfFiltersHaveTheShapesOfAnInnerDivisor) {
  for (const int64_t depth : {18, 50}) {
    ResNet::Options narrow = small(depth);
    narrow.inner_divisor = 2;
    const auto whole = make(small(depth)), divided = make(narrow);
    const SubnetCuts numbers(whole->subnet_plan(SubnetScope::filters), *whole);
    const auto subnet = subnet_of<float>(*whole, small(depth), filter_cuts(*whole, draw_subnets(numbers, 2, 1, 0), 1));
    const StateDict expected = subnet->state(), found = divided->state();
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : found) EXPECT_EQ(tensor.shape(), expected.at(name).shape()) << name;
  }
}

/// The models of two ranks after two rounds of two steps each, trained by themselves and merged by plain loops.
Values trained_by_hand(const Case& c) {
  constexpr int kRanks = 2;
  const auto whole = make(small(c.depth));
  const SubnetCuts numbers(whole->subnet_plan(c.scope), *whole);
  for (uint32_t round = 0; round < 2; ++round) {
    const SubnetParts parts = draw_subnets(numbers, kRanks, 1, round);
    std::vector<StateDict> trained;
    std::vector<Cuts> cuts;
    for (int rank = 0; rank < kRanks; ++rank) {
      cuts.push_back(cuts_of(*whole, c.scope, parts, rank));
      const auto subnet = subnet_of<float>(*whole, small(c.depth), cuts.back());
      Sgd optimizer(subnet->parameters(), {.lr = 0.05});
      for (int64_t step = 2 * round; step < 2 * round + 2; ++step) {
        subnet->zero_gradients();
        loss_of(*subnet, rank, step).backward();
        optimizer.step();
      }
      trained.push_back(clone_of(subnet->state()));
    }
    for (const auto& [name, tensor] : whole->state()) {
      if (tensor.dtype() == DType::i64) {
        tensor.fill(std::max(trained[0].at(name).item(), trained[1].at(name).item()));
      } else if (cuts[0].contains(name)) {
        for (size_t rank = 0; rank < kRanks; ++rank)
          visit<float>(trained[rank].at(name), tensor, cuts[rank].at(name),
                       [](float& mine, float& theirs) { theirs = mine; });
      } else {
        for (int64_t i = 0; i < tensor.numel(); ++i)
          tensor.data<float>()[i] = (trained[0].at(name).data<float>()[i] + trained[1].at(name).data<float>()[i]) / 2;
      }
    }
  }
  return values_of(whole->state());
}

TEST(SubnetsByHand, TrainAndMergeToTheSameBits) {
  for (const Case& c : kCases) {
    const Values expected = trained_by_hand(c);
    for (const auto exchange : {SubnetExchange::coordinator, SubnetExchange::peer}) {
      const auto found = on_all(2, [&](Communicator& communicator) {
        const auto model = make(small(c.depth));
        Sgd optimizer(model->parameters(), {.lr = 0.05});
        IndependentSubnets subnets(*model, optimizer, communicator, model->subnet_plan(c.scope),
                                   {.local_steps = 2, .exchange = exchange});
        for (int64_t step = 0; step < 4; ++step) {
          subnets.begin_step(step);
          model->zero_gradients();
          loss_of(*model, communicator.rank(), step).backward();
          subnets.step();
        }
        subnets.consolidate();
        return values_of(model->state());
      });
      EXPECT_EQ(found[1], expected) << c.depth;
      EXPECT_EQ(found[0], found[1]);
      EXPECT_NE(found[0], values_of(make(small(c.depth))->state()));
    }
  }
}

TEST(ResidualBlocks, AddLessInAnEvaluationIfSubnetsHaveAPartOfThem) {
  // A block without a branch passes x. With a divisor of 2, a block adds half of what it adds without one.
  const auto block = [](int64_t divisor) {
    auto made =
        std::make_unique<networks::BasicBlock>(networks::BlockOptions{.in = 6, .width = 6, .branch_divisor = divisor});
    made->initialize(3);
    made->bn2.weight->value().fill(1e-3);  // so that no relu cuts a sum
    made->set_training(false);
    return made;
  };
  Tensor x = Tensor::empty({2, 6, 5, 5});
  normal(1)(x, RandomStream({.seed = 4}));
  for (float& value : x.span<float>()) value = std::abs(value) + 5;
  const auto y = [&](Layer& layer) { return layer(x).value().to_vector<double>(); };
  const auto whole = y(*block(1)), half = y(*block(2)), in = x.to_vector<double>();
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_GT(whole[i], 0);
    EXPECT_NEAR(half[i] - in[i], (whole[i] - in[i]) / 2, 1e-5);
  }
  const auto in_training = block(2);
  in_training->set_training(true);
  const auto undivided = block(1);
  undivided->set_training(true);
  EXPECT_EQ(y(*in_training), y(*undivided));
}

}  // namespace
}  // namespace tern::test
