#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/layers/activation.h"
#include "tern/layers/containers.h"
#include "tern/layers/linear.h"
#include "tern/optim/sgd.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

std::unique_ptr<Sequential> make_net(int64_t classes = 3) {
  auto net = std::make_unique<Sequential>();
  net->append<Linear>({.in = 4, .out = 5}).append<Relu>().append<Linear>({.in = 5, .out = classes});
  net->initialize(1);
  return net;
}

Variable loss_of(Sequential& net) { return mse(net(Tensor::full({2, 4}, 0.5)), Tensor::full({2, 3}, 1)); }

std::vector<std::string> names_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  return names;
}

TEST(Freeze, LeavesFrozenParametersAsTheyAre) {
  const auto net = make_net();
  net->freeze("0.*");
  EXPECT_EQ(names_of(net->trained_parameters()), (std::vector<std::string>{"2.weight", "2.bias"}));
  EXPECT_EQ(net->parameters().size(), 4u);
  const std::vector<float> frozen = net->state().at("0.weight").to_vector<float>(),
                           trained = net->state().at("2.weight").to_vector<float>();
  Sgd sgd(net->parameters(), {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1});
  for (int step = 0; step < 2; ++step) {
    sgd.zero_gradients();
    loss_of(*net).backward();
    EXPECT_FALSE(net->parameters()[0].parameter->gradient().defined());
    sgd.step();
  }
  EXPECT_EQ(net->state().at("0.weight").to_vector<float>(), frozen);
  EXPECT_NE(net->state().at("2.weight").to_vector<float>(), trained);
}

TEST(Freeze, ExchangesOnlyWhatIsTrained) {
  const auto bytes_with = [](const char* pattern) {
    auto transports = make_in_process(2);
    uint64_t bytes = 0;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        TransportCommunicator communicator(std::move(transports[static_cast<size_t>(rank)]));
        const auto net = make_net();
        if (pattern) net->freeze(pattern);
        Sgd sgd(net->parameters(), {.lr = 0.1});
        DataParallel method(*net, sgd, communicator, {.check_every = 0});
        method.begin_step(0);
        loss_of(*net).backward();
        method.step();
        if (rank == 0) bytes = communicator.traffic().sent_payload;
      });
    for (auto& rank : ranks) rank.join();
    return bytes;
  };
  EXPECT_EQ(bytes_with(nullptr), 4u * (5 * 4 + 5 + 3 * 5 + 3)) << "a ring of two sends each float once";
  EXPECT_EQ(bytes_with("0.*"), 4u * (3 * 5 + 3));
}

TEST(Freeze, NamesAPatternThatMatchesNothing) {
  EXPECT_EQ(message_of<InputError>([] { make_net()->freeze("conv*"); }),
            "freeze 'conv*' matches none of the model's parameters; the last is '2.bias'");
}

TEST(LoadMatchingState, TakesWhatFitsAndNamesTheRest) {
  const auto source = make_net(7), target = make_net();
  StateDict state = source->state();
  state.add("extra", Tensor::zeros({2}));
  const std::vector<float> own = target->state().at("2.weight").to_vector<float>();
  source->parameters()[0].parameter->set_value(Tensor::full({5, 4}, 9));
  StateDict changed;
  for (const auto& [name, tensor] : state) changed.add(name, name == "0.weight" ? Tensor::full({5, 4}, 9) : tensor);
  const PartialCopy copy = target->load_matching_state(changed);
  EXPECT_EQ(copy.taken, (std::vector<std::string>{"0.weight", "0.bias"}));
  EXPECT_EQ(copy.left, (std::vector<std::string>{"2.weight (f32 [7, 5], expected [3, 5])",
                                                 "2.bias (f32 [7], expected [3])", "extra"}));
  EXPECT_EQ(copy.missing, (std::vector<std::string>{"2.weight", "2.bias"}));
  EXPECT_EQ(target->state().at("0.weight").to_vector<float>(), std::vector<float>(20, 9));
  EXPECT_EQ(target->state().at("2.weight").to_vector<float>(), own);
  StateDict other;
  other.add("a", Tensor::zeros({1}));
  EXPECT_EQ(message_of<InputError>([&] { target->load_matching_state(other); }),
            "load: none of the 1 tensors fits the model; the first is a");
}

}  // namespace
}  // namespace tern
