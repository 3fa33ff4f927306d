#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Draws the loss and the scores over the steps of a run into one SVG file. Redraws the file at each evaluation and
/// checkpoint. The file also holds the points, so a resumed run with the same file shows the earlier parts, too.
class Curves final : public Listener {
 public:
  explicit Curves(std::string path) : path_(std::move(path)) {}

  void started(const RunStart& run) override;
  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void checkpointing() override { draw(); }

  using Points = std::vector<std::pair<double, double>>;  ///< step, value
  /// A value at each step, and at each evaluation.
  struct Curve {
    Points training, test;
  };

 private:
  void add(Points Curve::*points, int64_t step, double loss, const std::vector<double>& scores);
  void read_earlier_parts(int64_t last_step);
  void draw() const;

  std::string path_, heading_, subheading_;
  std::vector<Score> scores_;
  std::vector<Curve> curves_;  ///< of the loss, then of each of scores_
};

/// The value at each point of the line that fits the points around it best, about 1/50 of all points. It follows a
/// trend without a delay, also at the ends.
Curves::Points smooth(const Curves::Points& points);

}  // namespace tern::trainer
