#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/experiment.h"
#include "tern/apps/reproduce/linear_problem.h"
#include "tern/trainer/report/chart.h"

namespace tern {

/// QSGD's Theorem 3.6 (Alistarh et al., 2017) measured: how fast QSVRG comes to the minimum of strongly convex
/// problems, against 0.9^p, and the bits that it sends, against the bound; beside SVRG, which is the same with floats.
class QsgdTheorem36 final : public Experiment {
 public:
  struct Problem {
    const char* name;   ///< in names of runs
    const char* title;  ///< of its panel
    LinearLoss loss;
    LinearExamples (*examples)();
    int64_t dimensions;
    double condition;  ///< κ
  };
  /// How updates are coded.
  struct Method {
    const char* name;   ///< in names of runs
    const char* label;  ///< in figures
    const char* code;   ///< of qsgd; null: floats
    const char* color;
  };

  static constexpr int64_t kProcessors = 4;  ///< K
  static constexpr int64_t kStepsPerKappa = 45;
  static constexpr double kRateTimesL = 1.0 / 12;

  explicit QsgdTheorem36(const ExperimentOptions& options);

  static std::span<const Problem> problems();
  static std::span<const Method> methods();
  static double steps(const Problem& problem) { return kStepsPerKappa * problem.condition; }
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(const Problem& problem, const Method& method);
  static std::string codec(const Problem& problem, const Method& method);
  trainer::Chart chart(const Problem& problem, bool by_bits, const Results& results) const;
  std::string figure(const Results& results) const;
  std::string gap_table(const Problem& problem, const Results& results) const;
  static std::string bits_table(const Results& results);
  static std::string csv(const Results& results);

  int64_t epochs_;
};

}  // namespace tern
