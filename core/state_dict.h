#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// Named tensors in a fixed order. Names have PyTorch's form, for example "conv1.weight".
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  /// Appends a tensor. Throws if the name exists already.
  void add(std::string name, Tensor tensor);
  /// Returns null if there is no tensor of that name.
  const Tensor* find(std::string_view name) const;
  /// Throws an error with the name if there is no tensor of that name.
  const Tensor& at(std::string_view name) const;

  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  ///< index in entries_, by name
};

/// Copies each tensor of `source` to the tensor of the same name in `target`. `owner` names the owner of `target` in
/// errors, for example "the model". Throws InputError if a tensor is missing or unexpected, or if its shape or kind of
/// element differs. The message names the first such tensor and its shapes. On error, nothing has changed.
void copy_state(const StateDict& source, const StateDict& target, std::string_view owner);

/// Whether the name of a tensor matches a shell pattern, such as "layer1.*". `*` stands for any characters.
bool name_matches(const std::string& name, const std::string& pattern);

/// What `copy_matching_state` did.
struct PartialCopy {
  std::vector<std::string> taken;    ///< tensors that were copied
  std::vector<std::string> left;     ///< of the source; not copied: "fc.weight (f32 [10, 512], expected [5, 512])"
  std::vector<std::string> missing;  ///< of the target; they keep their values
};
/// Copies each tensor of `source` that `target` has with the same name, shape and kind of element.
PartialCopy copy_matching_state(const StateDict& source, const StateDict& target);

}  // namespace tern
