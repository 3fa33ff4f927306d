#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tern/apps/trainer/listener.h"
#include "tern/apps/trainer/team.h"
#include "tern/data/dataset.h"

namespace tern {

/// Tells listeners of examples that some rank could not read, again only where there are more.
class UnreadNotes {
 public:
  explicit UnreadNotes(const std::vector<std::unique_ptr<Listener>>& listeners) : listeners_(listeners) {}

  /// All ranks of `team` call it together; the listeners of those that have any hear it.
  void tell_of(const Dataset& data, const Team& team);

 private:
  const std::vector<std::unique_ptr<Listener>>& listeners_;
  std::map<const Dataset*, size_t> told_;
};

}  // namespace tern
