#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// Writes a run as JSON, one object per line. Flushes each line at once and syncs the file before a checkpoint counts.
/// Numbers read back exactly. A resumed run appends, so steps after its checkpoint may be in the file twice; the later
/// ones count.
class JsonLog final : public Listener {
 public:
  /// Throws InputError if `path` cannot be written, or if another run writes it. Then its lines stay.
  JsonLog(const std::string& path, bool append);

  void started(const RunStart& run) override;
  void noted(const std::string& note) override;
  void stepped(const StepReport& report) override;
  void counted(const HistogramReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void checkpointing() override;
  void ended(const RunReport& report) override;

 private:
  void write_line(const std::string& line);
  void check_written(bool written) const;

  std::string path_;
  bool team_ = false;    ///< several ranks train and send bytes
  bool target_ = false;  ///< the run may end at a score
  std::vector<Score> scores_;
  std::string noun_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace tern::trainer
