#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/data_choice.h"
#include "tern/apps/reproduce/experiment.h"

namespace tern {

/// TernGrad's Figure 3 (Wen et al., 2017, section 4.1): LeNet on MNIST with (a) momentum and (b) vanilla SGD, ternary
/// gradients of N workers that share a batch of 64, against float gradients. The float baseline is one process with
/// the whole batch: without batch norm the mean of N equal shares' gradients is the batch's gradient for every N, up
/// to the order of float sums.
class TernGradFigure3 final : public Experiment {
 public:
  /// One kind of SGD: a panel of the figure.
  struct Rule {
    const char* name;   ///< in names of runs
    const char* title;  ///< of the panel
    std::vector<std::string> flags;
  };
  /// A number of workers, and how long and how often they train.
  struct Point {
    int64_t workers, iterations, seeds;
  };

  static constexpr int64_t kPaperIterations = 10000;

  /// An InputError names the option that cannot be.
  explicit TernGradFigure3(const ExperimentOptions& options);

  static std::span<const Rule> rules();
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  Run make_run(const Rule& rule, const Point& point, int64_t workers, int64_t seed) const;
  /// Accuracies in percent, of the seeds that have ended; `workers` 0 is the float baseline.
  std::vector<double> accuracies(const Rule& rule, const Point& point, int64_t workers, const Results& results) const;
  std::string table(const Rule& rule, const Results& results) const;
  std::string figure(const Results& results) const;
  std::string setting() const;

  DataChoice data_;
  std::vector<Point> points_;  ///< in rising order of workers
};

}  // namespace tern
