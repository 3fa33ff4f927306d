#include "tern/apps/advise/network.h"

#include <fmt/format.h>

#include "tern/apps/models/cifarnet.h"
#include "tern/apps/models/lenet.h"
#include "tern/apps/models/mlp.h"
#include "tern/apps/models/one_tower_alexnet.h"
#include "tern/apps/models/resnet.h"
#include "tern/apps/trainer/suggestion.h"
#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"

namespace tern::advise {
namespace {

constexpr double kRate = 1e-4;  // on noise, nothing is to be learned

template <int64_t kInput, int64_t kHidden, int64_t kClasses>
std::unique_ptr<Module> make_mlp() {
  return std::make_unique<models::Mlp>(models::Mlp::Options{.widths = {kInput, kHidden, kClasses}, .norm = true});
}

template <int64_t kDepth>
std::unique_ptr<Module> make_resnet() {
  return std::make_unique<models::ResNet>(models::ResNet::Options{.depth = kDepth});
}

std::unique_ptr<Optimizer> adam(std::vector<NamedParameter> parameters) {
  return std::make_unique<Adam>(std::move(parameters), Adam::Options{.lr = kRate});
}

Network resnet(const char* name, const char* depth, std::unique_ptr<Module> (*make)()) {
  return {name, {"train_resnet", "--depth", depth}, {3, 32, 32, 10}, make};
}

}  // namespace

std::unique_ptr<Optimizer> momentum_sgd(std::vector<NamedParameter> parameters) {
  return std::make_unique<Sgd>(std::move(parameters), Sgd::Options{.lr = kRate, .momentum = 0.9});
}

std::span<const Network> networks() {
  static const Network all[] = {
      {"lenet",
       {"train_lenet"},
       {1, 28, 28, 10},
       []() -> std::unique_ptr<Module> { return std::make_unique<models::LeNet>(); }},
      {"mlp", {"train_mlp"}, {1, 28, 28, 10}, make_mlp<784, 512, 10>},
      {"mlp4096", {"train_mlp", "--data", "tones", "--hidden", "4096"}, {1, 128, 32, 35}, make_mlp<4096, 4096, 35>},
      {"cifarnet",
       {"train_cifarnet"},
       {3, 24, 24, 10},
       []() -> std::unique_ptr<Module> {
         return std::make_unique<models::CifarNet>(
             models::CifarNet::Options{.channels = 3, .height = 24, .width = 24, .classes = 10});
       },
       adam,
       {"--ema-decay", "0"}},
      resnet("resnet20", "20", make_resnet<20>),
      resnet("resnet56", "56", make_resnet<56>),
      resnet("resnet110", "110", make_resnet<110>),
      resnet("resnet18", "18", make_resnet<18>),
      {"alexnet",
       {"train_alexnet", "--towers", "one"},
       {3, 224, 224, 10},
       []() -> std::unique_ptr<Module> {
         return std::make_unique<models::OneTowerAlexNet>(models::AlexNetOptions{.classes = 10});
       }},
  };
  return all;
}

const Network& find_network(const std::string& name) {
  std::vector<std::string> names;
  for (const Network& network : networks()) {
    if (network.name == name) return network;
    names.emplace_back(network.name);
  }
  fail_input(
      {"--model: found '", name, "', expected ", fmt::format("{}", fmt::join(names, "|")), suggestion(name, names)});
}

}  // namespace tern::advise
