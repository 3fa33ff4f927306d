#include "tern/core/state_dict.h"

#include "tern/core/error.h"

namespace tern {

void StateDict::add(std::string name, Tensor tensor) {
  check(places_.try_emplace(name, entries_.size()).second, "state: '", name, "' is there twice");
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  check(tensor != nullptr, "state: no tensor named '", name, "'");
  return *tensor;
}

void copy_state(const StateDict& source, const StateDict& target, std::string_view owner) {
  for (const auto& [name, tensor] : target) {
    const Tensor* found = source.find(name);
    check_input(found != nullptr, "load: no tensor named '", name, "', ", owner, " expects one of shape ",
                tensor.shape());
    check_input(found->shape() == tensor.shape() && is_floating(found->dtype()) == is_floating(tensor.dtype()),
                "load: '", name, "' is ", found->dtype(), " ", found->shape(), ", ", owner, " expects ", tensor.dtype(),
                " ", tensor.shape());
  }
  for (const auto& [name, tensor] : source)
    check_input(target.find(name) != nullptr, "load: '", name, "' of shape ", tensor.shape(), " is not in ", owner);
  for (const auto& [name, tensor] : target) tensor.copy_from(*source.find(name));
}

}  // namespace tern
