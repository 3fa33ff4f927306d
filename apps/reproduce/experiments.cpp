#include "tern/apps/reproduce/papers.h"
#include "tern/core/error.h"
#include "tern/trainer/flags/words.h"

namespace tern {

using namespace trainer;

std::vector<ExperimentEntry> experiments() {
  std::vector<ExperimentEntry> all;
  for (const auto paper : {terngrad_experiments(), qsgd_experiments(), ist_experiments()})
    all.insert(all.end(), paper.begin(), paper.end());
  return all;
}

ExperimentEntry find_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const ExperimentEntry& entry : experiments()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    check_input(entry.make != nullptr, name, " (", entry.title, ") is not run yet: ", entry.lacks);
    return entry;
  }
  fail_input({"there is no table '", name, "'", suggestion(name, names), "; reproduce list names them all"});
}

}  // namespace tern
