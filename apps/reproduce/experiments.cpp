#include "tern/apps/reproduce/experiment.h"
#include "tern/apps/reproduce/terngrad_fig3.h"
#include "tern/apps/trainer/suggestion.h"
#include "tern/core/error.h"

namespace tern {

std::span<const ExperimentEntry> experiments() {
  static const ExperimentEntry entries[] = {
      {.name = "terngrad-fig3",
       .title = "TernGrad, Figure 3: LeNet on MNIST, accuracy over the number of workers",
       .data = "MNIST: ./dev data mnist",
       .time = "about 2.5 hours on 2 cores; with --quick 3 minutes",
       .make = make_terngrad_fig3},
  };
  return entries;
}

const ExperimentEntry& find_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const ExperimentEntry& entry : experiments()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail_input({"there is no table '", name, "'", suggestion(name, names), "; reproduce list names them all"});
}

}  // namespace tern
