#pragma once

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
};

}  // namespace tern
