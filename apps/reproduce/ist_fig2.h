#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/experiment.h"
#include "tern/apps/reproduce/ist_costs.h"

namespace tern {

/// IST's Figure 2 (Yuan et al., section 3.4): traffic and operations of a step by the number of machines, data parallel
/// and IST, for a perceptron with three hidden layers; by the paper's formulas, by the sum that they stand for, and as
/// tern's ledgers count them while it trains that perceptron.
class IstFigure2 final : public Experiment {
 public:
  /// An InputError names the option that cannot be.
  explicit IstFigure2(const ExperimentOptions& options);

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  /// What was counted with so many workers; null where it was not, or not yet.
  const Numbers* counted(int64_t workers, const Results& results) const;
  std::string traffic_table(const Results& results) const;
  std::string operations_table(const Results& results) const;
  std::string csv(const Results& results) const;
  std::string traffic_figure(const Results& results) const;
  std::string operations_figure(const Results& results) const;
  std::string network() const;

  IstCosts costs_;
  std::vector<int64_t> workers_;  ///< of the runs
  std::vector<int64_t> places_;   ///< of the tables: those and the paper's
};

}  // namespace tern
