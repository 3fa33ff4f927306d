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

/// How a network was published to be trained, on the data set that its defaults name.
struct Recipe {
  TrainSettings defaults = {};  ///< lengths, rates and the rest: what flags are unless they are given
  /// See Application.
  std::function<void(Transform&, const ImageSpec& images)> augment = {};
  std::function<void(TrainSettings&, const IsGiven&)> settle = {};
};

/// A form of a network that has a name of its own, such as "resnet56". What is left out is as its program has it.
struct Preset {
  std::string name;
  std::string data = {};  ///< data set
  std::map<std::string, std::string> choices = {};
  std::map<std::string, int64_t> counts = {};  ///< {"depth", 56}

  /// As its program takes it: {"--depth", "56"}.
  std::vector<std::string> flags() const;
};

/// A network, described once: its training program, the papers' tables and the advisor read this. Immutable.
struct Network {
  std::string name;  ///< "resnet": train_resnet trains it
  std::function<std::unique_ptr<Module>(const ModelSpec&)> model;
  std::vector<Choice> choices = {};  ///< the program's flags that shape the model
  std::vector<Count> counts = {};
  Recipe recipe = {};
  std::vector<Preset> presets = {};

  std::string program() const { return "train_" + name; }
  Application application() const;
};

/// A network in the form of one of its presets. Both are the table's.
struct Variant {
  const Network& network;
  const Preset& preset;

  /// The command that trains it: {"train_resnet", "--depth", "56"}.
  std::vector<std::string> words() const;
  /// What that command sets, before `settle`.
  TrainSettings settings() const;
};

/// Every network that tern has. Adding one is its header and source, a line in this table, and a page train_NAME.cpp.
std::span<const Network* const> all();
/// The presets of all networks.
std::vector<Variant> variants();
/// An InputError lists the names and offers the nearest one if `name` is none of them.
Variant find_variant(const std::string& name);

}  // namespace tern::networks
