#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// Named tensors in a fixed order; names as PyTorch gives them ("conv1.weight").
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  /// Appends; an error if the name is there already.
  void add(std::string name, Tensor tensor);
  /// Null where the name is absent.
  const Tensor* find(std::string_view name) const;
  /// An error that names what is missing.
  const Tensor& at(std::string_view name) const;

  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  ///< in entries_, by name
};

/// Copies each tensor of `source` onto that of its name in `target`, whose owner ("the model") errors name. An
/// InputError names the first tensor that is missing, unexpected, or of another shape or kind of element, with both
/// shapes, and then nothing has changed.
void copy_state(const StateDict& source, const StateDict& target, std::string_view owner);

}  // namespace tern
