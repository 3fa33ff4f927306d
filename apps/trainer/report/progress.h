#pragma once

#include <chrono>
#include <string>

#include "tern/trainer/rank/console.h"
#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Prints the progress of a run: on a terminal without mpirun, one line that is redrawn; otherwise, a line every few
/// seconds. Also prints a line per evaluation and a summary at the end.
class Progress final : public Listener {
 public:
  /// `out` is not owned.
  explicit Progress(LineWriter& out) : out_(out) {}

  ~Progress() override { end_live_line(); }

  void started(const RunStart& run) override;
  void noted(const std::string& note) override { print_line("note: " + note); }
  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void ended(const RunReport& report) override;

 private:
  using Clock = std::chrono::steady_clock;

  std::string step_line(const StepReport& report);
  void print_team(const TeamReport& team);
  void print_operations(const std::vector<OperationTime>& operations);
  void print_line(const std::string& line);
  void end_live_line();

  LineWriter& out_;
  RunStart run_;
  bool redraws_ = false, line_open_ = false;
  Clock::time_point shown_at_ = {};
  int64_t shown_step_ = 0;
  double shown_seconds_ = 0;
};

}  // namespace tern::trainer
