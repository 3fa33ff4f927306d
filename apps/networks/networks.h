#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/trainer/application.h"

namespace tern::networks {

/// The published training recipe of a network, for the data set in `defaults`.
struct Recipe {
  TrainSettings defaults = {};  ///< the default values of the flags
  /// See Application for `augment`, `prepare` and `settle`.
  std::function<void(Transform&, const ImageSpec& images)> augment = {};
  std::function<void(Module&, const Dataset& training, const Transform& transform)> prepare = {};
  std::function<void(TrainSettings&, const IsGiven&)> settle = {};
};

/// A variant of a network with a name of its own, such as "resnet56". The program's defaults apply to all that it
/// leaves out.
struct Preset {
  std::string name;
  std::string data = {};  ///< data set; empty: the recipe's
  std::map<std::string, std::string> choices = {};
  std::map<std::string, int64_t> counts = {};  ///< {"depth", 56}

  /// The flags of its program: {"--depth", "56"}.
  std::vector<std::string> flags() const;
};

/// --norm-momentum: the momentum of batch normalisation in the networks that TernGrad trains on ImageNet.
Choice norm_momentum_choice();
/// Gives the value of --norm-momentum to every batch normalisation of the model.
void set_norm_momentum(Module& model, const ModelSpec& spec);

/// The description of a network. Its training program, the papers' tables and the advisor use it. Immutable.
struct Network {
  std::string name;  ///< such as "resnet"; the program train_resnet trains it
  std::function<std::unique_ptr<Module>(const ModelSpec&)> model;
  std::vector<Choice> choices = {};  ///< flags of the program that determine the model
  std::vector<Count> counts = {};
  Recipe recipe = {};
  std::vector<NamedRecipe> recipes = {};                                 ///< others, for --recipe
  std::function<std::unique_ptr<Task>(const TrainSettings&)> task = {};  ///< empty: classification of pictures
  std::vector<Preset> presets = {};

  std::string program() const { return "train_" + name; }
  /// The defaults with --recipe NAME. Throws Error if there is no such recipe.
  TrainSettings defaults(const std::string& named) const;
  Application application() const;
};

/// A network with one of its presets. The table of networks owns both.
struct Variant {
  const Network& network;
  const Preset& preset;

  /// The command that trains it: {"train_resnet", "--depth", "56"}.
  std::vector<std::string> words() const;
  /// The settings of that command, before `settle`.
  TrainSettings settings() const;
};

/// All networks of tern. To add one, add its header and source, a line in this table, and a file train_NAME.cpp.
std::span<const Network* const> all();
/// The presets of all networks.
std::vector<Variant> variants();
/// The variant with this name. Throws InputError if there is none; the message lists the names and offers the nearest
/// one.
Variant find_variant(const std::string& name);

}  // namespace tern::networks
