#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Draws the loss and the scores over the steps of a run (or of its part since a resume) into one SVG file. Redraws the
/// file at each evaluation.
class Curves final : public Listener {
 public:
  explicit Curves(std::string path) : path_(std::move(path)) {}

  void started(const RunStart& run) override;
  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override;

 private:
  using Points = std::vector<std::pair<double, double>>;

  void draw() const;

  std::string path_, heading_, subheading_;
  /// A value at each step, and at each evaluation.
  struct Curve {
    Points training, test;
  };
  Curve loss_;
  std::vector<Score> scores_;
  std::vector<Curve> score_curves_;  ///< in the order of scores_
};

}  // namespace tern::trainer
