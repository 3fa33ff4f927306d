#include "tern/networks/networks.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/layers/normalization.h"
#include "tern/networks/airbench.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/extreme.h"
#include "tern/networks/googlenet.h"
#include "tern/networks/lenet.h"
#include "tern/networks/lstm.h"
#include "tern/networks/mlp.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"
#include "tern/trainer/flags/words.h"

namespace tern::networks {

using namespace trainer;

std::vector<std::string> Preset::flags() const {
  std::vector<std::string> words;
  if (!data.empty()) words = {"--data", data};
  for (const auto& [flag, value] : counts) words.insert(words.end(), {"--" + flag, std::to_string(value)});
  for (const auto& [flag, value] : choices) words.insert(words.end(), {"--" + flag, value});
  return words;
}

Choice norm_momentum_choice() {
  return {.flag = "norm-momentum",
          .values = {"0.0003", "0.01", "0.1"},
          .help = "Weight of a batch in the running statistics: TernGrad's authors', or for short runs"};
}

void set_norm_momentum(Module& model, const ModelSpec& spec) {
  for (const NamedModule& part : model.modules())
    if (auto* norm = dynamic_cast<BatchNorm*>(part.module))
      norm->set_momentum(std::stod(spec.choices.at("norm-momentum")));
}

TrainSettings Network::defaults(const std::string& named) const {
  const auto found = std::ranges::find(recipes, named, &NamedRecipe::name);
  check(found != recipes.end(), "network ", name, " has no recipe '", named, "'");
  TrainSettings settings = recipe.defaults;
  found->change(settings);
  return settings;
}

Application Network::application() const {
  return {.name = program(),
          .model = model,
          .task = task,
          .defaults = recipe.defaults,
          .recipes = recipes,
          .choices = choices,
          .counts = counts,
          .augment = recipe.augment,
          .prepare = recipe.prepare,
          .settle = recipe.settle};
}

std::vector<std::string> Variant::words() const {
  std::vector<std::string> words = {network.program()};
  const std::vector<std::string> flags = preset.flags();
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

TrainSettings Variant::settings() const {
  TrainSettings settings = network.recipe.defaults;
  if (!preset.data.empty()) settings.data = preset.data;
  settings.choices = preset.choices;
  for (const Choice& choice : network.choices) settings.choices.try_emplace(choice.flag, choice.values.front());
  settings.counts = preset.counts;
  for (const Count& count : network.counts) settings.counts.try_emplace(count.flag, count.value);
  settings.augment = network.recipe.augment;
  return settings;
}

std::span<const Network* const> all() {
  static const Network* const table[] = {&lenet(),   &mlp(), &cifarnet(),  &airbench(), &resnet(),
                                         &alexnet(), &vgg(), &googlenet(), &lstm(),     &extreme()};
  return table;
}

std::vector<Variant> variants() {
  std::vector<Variant> found;
  for (const Network* network : all())
    for (const Preset& preset : network->presets) found.push_back({*network, preset});
  return found;
}

Variant find_variant(const std::string& name) {
  std::vector<std::string> names;
  for (const Variant& variant : variants()) {
    if (variant.preset.name == name) return variant;
    names.push_back(variant.preset.name);
  }
  fail_input({"found '", name, "', expected ", fmt::format("{}", fmt::join(names, "|")), suggestion(name, names)});
}

}  // namespace tern::networks
