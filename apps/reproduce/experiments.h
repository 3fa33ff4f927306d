#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// Every table and figure of the papers, in their order, those that tern cannot make yet among them.
std::vector<ExperimentEntry> experiments();
/// An InputError offers the nearest name where `name` is none of them, and says why tern does not run it yet.
ExperimentEntry find_experiment(const std::string& name);
/// What `reproduce list` prints.
std::string experiment_list();

// Those that tern makes: each stands in the file of its name. Adding one is that file, its line here, and its line in
// `experiments()`.

ExperimentEntry terngrad_fig2();
ExperimentEntry terngrad_fig3();
ExperimentEntry terngrad_fig4();
ExperimentEntry terngrad_fig5();
ExperimentEntry terngrad_table1();
ExperimentEntry terngrad_table2();

ExperimentEntry qsgd_fig1();
ExperimentEntry qsgd_fig2();
ExperimentEntry qsgd_table1();
ExperimentEntry qsgd_lemma31();
ExperimentEntry qsgd_thm32();
ExperimentEntry qsgd_thm36();
ExperimentEntry qsgd_1bit();
ExperimentEntry qsgd_perceptron();

ExperimentEntry ist_fig2();
ExperimentEntry ist_fig3();
ExperimentEntry ist_fig4();
ExperimentEntry ist_table1();
ExperimentEntry ist_table3();

}  // namespace tern::reproduce
