#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tern/tern.h"

namespace tern::torch_cases {

/// A call of tern's public API, as expressions.py writes it.
struct Call {
  nlohmann::json attributes;
  std::vector<Variable> inputs = {};        ///< undefined for None
  std::shared_ptr<Module> module = {};      ///< of a layer's call
  std::map<size_t, Parameter*> owned = {};  ///< the parameters of `module`, by the input that has their values

  /// The gradient of an input after the backward pass.
  Tensor gradient(size_t input) const {
    const auto found = owned.find(input);
    return found == owned.end() ? inputs[input].gradient() : found->second->gradient();
  }

  double number(const char* name) const;
  int64_t whole(const char* name) const { return attributes.at(name).get<int64_t>(); }
  bool flag(const char* name) const { return attributes.at(name).get<bool>(); }
  std::string word(const char* name) const { return attributes.at(name).get<std::string>(); }
  template <class T = int64_t>
  std::vector<T> list(const char* name) const {
    return attributes.at(name).get<std::vector<T>>();
  }
  Extent2 pair(const char* name) const { return {list(name).at(0), list(name).at(1)}; }
};

using Operation = std::function<std::vector<Variable>(Call&)>;

/// All operations that a case may name.
const std::map<std::string, Operation>& operations();

}  // namespace tern::torch_cases
