#pragma once

#include <memory>
#include <span>

#include "tern/apps/reproduce/experiment.h"

namespace tern {

// Every table and figure of the papers, in their order. An experiment is a file with its `make` function, and its line.

std::span<const ExperimentEntry> terngrad_experiments();
std::unique_ptr<Experiment> make_terngrad_fig2(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_terngrad_fig3(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_terngrad_fig4(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_terngrad_fig5(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_terngrad_table1(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_terngrad_table2(const ExperimentOptions& options);

std::span<const ExperimentEntry> qsgd_experiments();

std::span<const ExperimentEntry> ist_experiments();
std::unique_ptr<Experiment> make_ist_fig2(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_ist_fig3(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_ist_fig4(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_ist_table1(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_ist_table3(const ExperimentOptions& options);

std::unique_ptr<Experiment> make_qsgd_fig1(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_fig2(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_lemma31(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_thm32(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_thm36(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_1bit(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_perceptron(const ExperimentOptions& options);
std::unique_ptr<Experiment> make_qsgd_table1(const ExperimentOptions& options);

}  // namespace tern
