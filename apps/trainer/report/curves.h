#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Draws loss and accuracy over the steps of a run (or of its part since a resume) into one SVG file. Redraws the file
/// at each evaluation.
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
  Points losses_, accuracies_;
  Points test_losses_, test_accuracies_;
};

}  // namespace tern::trainer
