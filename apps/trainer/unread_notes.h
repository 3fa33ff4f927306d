#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tern/apps/trainer/listener.h"
#include "tern/data/dataset.h"

namespace tern {

/// Tells listeners of examples that could not be read, again only where there are more.
class UnreadNotes {
 public:
  explicit UnreadNotes(const std::vector<std::unique_ptr<Listener>>& listeners) : listeners_(listeners) {}

  void tell_of(const Dataset& data);

 private:
  const std::vector<std::unique_ptr<Listener>>& listeners_;
  std::map<const Dataset*, int64_t> told_;
};

}  // namespace tern
