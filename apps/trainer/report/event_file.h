#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Writes scalars to a file for TensorBoard: `tensorflow.Event` messages in TFRecord frames (length, its masked CRC32C,
/// the message, its masked CRC32C). Flushes after each.
class EventFile final : public Listener {
 public:
  /// Creates a file in `folder`, and the folder if it is missing. Throws InputError if it cannot.
  explicit EventFile(const std::string& folder);

  void started(const RunStart& run) override { scores_ = run.scores; }
  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override;

  void add_scalar(std::string_view tag, int64_t step, double value);

 private:
  void write_record(const std::string& message);

  std::string path_;
  std::vector<Score> scores_;
  std::ofstream file_;
};

}  // namespace tern::trainer
