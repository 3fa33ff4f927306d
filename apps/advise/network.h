#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"

namespace tern::advise {

std::unique_ptr<Optimizer> momentum_sgd(std::vector<NamedParameter> parameters);

/// A network that advice can be asked for, as a training program makes it. Adding one is one more entry of the list in
/// network.cpp.
struct Network {
  const char* name;                ///< as a person types it
  std::vector<std::string> words;  ///< of the command that trains it: {"train_mlp", "--hidden", "4096"}
  ImageSpec images;                ///< as it sees them
  std::unique_ptr<Module> (*make)();
  /// By the update rule that the command has.
  std::unique_ptr<Optimizer> (*optimize)(std::vector<NamedParameter>) = momentum_sgd;
  std::vector<std::string> words_apart = {};  ///< to add where workers have models of their own
};

std::span<const Network> networks();
/// An InputError offers the nearest name where `name` is none of them.
const Network& find_network(const std::string& name);

}  // namespace tern::advise
