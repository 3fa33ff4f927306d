#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Writes scalars and histograms to a file for TensorBoard: `tensorflow.Event` messages in TFRecord frames (length, its
/// masked CRC32C, the message, its masked CRC32C). Flushes after each.
class EventFile final : public Listener {
 public:
  /// Creates a file in `folder`, and the folder if it is missing. Throws InputError if it cannot.
  explicit EventFile(const std::string& folder);

  void started(const RunStart& run) override;
  void stepped(const StepReport& report) override;
  void counted(const HistogramReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void checkpointing() override;

  void add_scalar(std::string_view tag, int64_t step, double value);
  void add_histogram(std::string_view tag, int64_t step, const Histogram& histogram);

 private:
  /// Writes a `Summary.Value` as an event.
  void write_value(int64_t step, const std::string& value);
  void write_record(const std::string& message);
  void check_written(bool written) const;

  std::string path_;
  std::vector<Score> scores_;
  bool team_ = false;  ///< several ranks train
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace tern::trainer
