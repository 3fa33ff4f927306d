#pragma once

#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// All tables and figures of the papers, in their order, including those that tern does not make; then tern's own.
std::vector<ExperimentEntry> experiments();
/// The experiment with this name. Throws InputError if there is none (with the nearest name), or if tern does not run
/// it (with the reason).
ExperimentEntry find_experiment(const std::string& name);
/// The text of `reproduce list`.
std::string experiment_list();

// The experiments that tern can run; each is in the file of its name. To add one, add its file, its line here, and its
// line in `experiments()`.

ExperimentEntry terngrad_fig2();
ExperimentEntry terngrad_fig3();
ExperimentEntry terngrad_fig4();
ExperimentEntry terngrad_fig5();
ExperimentEntry terngrad_table1();
ExperimentEntry terngrad_table2();
ExperimentEntry terngrad_table3();
ExperimentEntry terngrad_thm1();
ExperimentEntry terngrad_clip_lenet();
ExperimentEntry terngrad_clip_cifarnet();
ExperimentEntry terngrad_start();

ExperimentEntry qsgd_fig1();
ExperimentEntry qsgd_fig2();
ExperimentEntry qsgd_fig3();
ExperimentEntry qsgd_table1();
ExperimentEntry qsgd_table1_imagenet();
ExperimentEntry qsgd_table1_speed();
ExperimentEntry qsgd_table1_lstm();
ExperimentEntry qsgd_fields();
ExperimentEntry qsgd_lemma31();
ExperimentEntry qsgd_thm32();
ExperimentEntry qsgd_thm36();
ExperimentEntry qsgd_1bit();
ExperimentEntry qsgd_perceptron();

ExperimentEntry ist_fig2();
ExperimentEntry ist_fig3();
ExperimentEntry ist_fig4();
ExperimentEntry ist_table1();
ExperimentEntry ist_table2();
ExperimentEntry ist_table3();
ExperimentEntry ist_properties();

ExperimentEntry grid();

}  // namespace tern::reproduce
