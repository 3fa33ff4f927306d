#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Writes scalars into a file that TensorBoard reads: TFRecord frames (length, its masked CRC32C, the message, its
/// masked CRC32C) around `tensorflow.Event` messages. Flushed after each.
class EventFile final : public Listener {
 public:
  /// A new file in `folder`, which is made where it is missing; an InputError where that cannot be.
  explicit EventFile(const std::string& folder);

  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override;

  void add_scalar(std::string_view tag, int64_t step, double value);

 private:
  void write_record(const std::string& message);

  std::string path_;
  std::ofstream file_;
};

}  // namespace tern::trainer
