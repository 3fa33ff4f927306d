#include "tern/core/state_dict.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern {

void StateDict::add(std::string name, Tensor tensor) {
  check(find(name) == nullptr, "state: '", name, "' is there twice");
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto entry = std::ranges::find(entries_, name, &Entry::first);
  return entry == entries_.end() ? nullptr : &entry->second;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  check(tensor != nullptr, "state: no tensor named '", name, "'");
  return *tensor;
}

}  // namespace tern
