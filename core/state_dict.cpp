#include "tern/core/state_dict.h"

#include <fnmatch.h>

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

namespace {

bool fits(const Tensor& source, const Tensor& target) {
  return source.shape() == target.shape() && is_floating(source.dtype()) == is_floating(target.dtype());
}

}  // namespace

bool name_matches(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

PartialCopy copy_matching_state(const StateDict& source, const StateDict& target) {
  PartialCopy copy;
  for (const auto& [name, tensor] : source) {
    const Tensor* const own = target.find(name);
    if (own == nullptr)
      copy.left.push_back(name);
    else if (!fits(tensor, *own))
      copy.left.push_back(join({name, " (", tensor.dtype(), " ", tensor.shape(), ", expected ", own->shape(), ")"}));
  }
  for (const auto& [name, tensor] : target) {
    const Tensor* const found = source.find(name);
    const bool takes = found != nullptr && fits(*found, tensor);
    (takes ? copy.taken : copy.missing).push_back(name);
    if (takes) Tensor(tensor).copy_from(*found);
  }
  return copy;
}

void copy_state(const StateDict& source, const StateDict& target, std::string_view owner) {
  for (const auto& [name, tensor] : target) {
    const Tensor* found = source.find(name);
    check_input(found != nullptr, "load: no tensor named '", name, "', ", owner, " expects one of shape ",
                tensor.shape());
    check_input(fits(*found, tensor), "load: '", name, "' is ", found->dtype(), " ", found->shape(), ", ", owner,
                " expects ", tensor.dtype(), " ", tensor.shape());
  }
  for (const auto& [name, tensor] : source)
    check_input(target.find(name) != nullptr, "load: '", name, "' of shape ", tensor.shape(), " is not in ", owner);
  for (const auto& [name, tensor] : target) tensor.copy_from(*source.find(name));
}

}  // namespace tern
