#include "tern/apps/reproduce/experiments.h"

#include <fmt/format.h>

#include "tern/core/error.h"
#include "tern/trainer/flags/words.h"

namespace tern::reproduce {

using namespace trainer;

std::vector<ExperimentEntry> experiments() {
  return {
      // Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning", NIPS 2017.
      {.name = "terngrad-fig1",
       .title = "TernGrad, Figure 1: distributed SGD with data parallelism",
       .data = "none",
       .lacks = "it is a diagram, with nothing to measure"},
      terngrad_fig2(),
      terngrad_fig3(),
      terngrad_fig4(),
      terngrad_fig5(),
      terngrad_table1(),
      terngrad_table2(),
      terngrad_table3(),
      terngrad_thm1(),
      terngrad_clip_lenet(),
      terngrad_clip_cifarnet(),
      terngrad_start(),
      // Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", NIPS 2017.
      qsgd_fig1(),
      qsgd_fig2(),
      qsgd_fig3(),
      qsgd_table1(),
      qsgd_table1_imagenet(),
      qsgd_table1_speed(),
      qsgd_table1_lstm(),
      qsgd_fields(),
      qsgd_lemma31(),
      qsgd_thm32(),
      qsgd_thm36(),
      qsgd_1bit(),
      qsgd_perceptron(),
      // Yuan et al., "Distributed Learning of Neural Networks using Independent Subnet Training", 2019.
      {.name = "ist-fig1",
       .title = "IST, Figure 1: a network decomposed into three subnets",
       .data = "none",
       .lacks = "it is a diagram, with nothing to measure"},
      ist_fig2(),
      ist_fig3(),
      ist_fig4(),
      ist_table1(),
      ist_table2(),
      ist_table3(),
      ist_properties(),
      // Of no paper.
      grid(),
  };
}

ExperimentEntry find_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const ExperimentEntry& entry : experiments()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    check_input(entry.make != nullptr, name, " (", entry.title, ") is not run: ", entry.lacks);
    return entry;
  }
  const std::string nearest = suggestion(name, names);
  fail_input({"there is no table '", name, "'", nearest.empty() ? "; `reproduce list` names all of them" : nearest});
}

std::string experiment_list() {
  std::string text;
  for (const ExperimentEntry& entry : experiments()) {
    text += fmt::format("{}\n  {}\n  data    {}\n  device  {}\n", entry.name, entry.title, entry.data, entry.device);
    text += entry.make ? fmt::format("  time    {}\n", entry.time) : fmt::format("  not run: {}\n", entry.lacks);
  }
  return text;
}

}  // namespace tern::reproduce
