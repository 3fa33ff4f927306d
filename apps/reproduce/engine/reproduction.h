#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/run_folder.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::reproduce {

/// Runs an experiment: makes the missing runs of its folder one after the other, and writes the report after each. Only
/// one process may work in a folder. One thread.
class Reproduction {
 public:
  /// Throws InputError if another process works in the folder, or if the folder has other contents.
  Reproduction(const ExperimentEntry& entry, const ReproduceCommand& command, trainer::Console& console);
  ~Reproduction();
  Reproduction(const Reproduction&) = delete;
  Reproduction& operator=(const Reproduction&) = delete;

  /// Makes all missing runs. If the user stops it, throws Interrupted after the current training run has written a
  /// checkpoint. If a run fails, throws an error with the run's last message.
  void run();

 private:
  void lock();
  std::filesystem::path kept_file(size_t number) const;
  /// Keeps the result of a finished run if --kept asks for it.
  void keep(size_t number) const;
  void train(size_t number);
  void compute(size_t number);
  std::string title(size_t number) const;
  void write() const;
  void show(const std::string& line);
  void say(const std::string& line);

  ExperimentEntry entry_;
  const ReproduceCommand& command_;
  trainer::Console& console_;
  trainer::InterruptGuard interrupt_;
  std::unique_ptr<Experiment> experiment_;
  std::vector<Run> runs_;
  std::filesystem::path folder_;
  size_t elsewhere_ = 0;  ///< results that do not count, because their times are of another processor
  int lock_ = -1;
  std::vector<RunFolder> folders_;  ///< one for each of runs_
  Results results_;
};

}  // namespace tern::reproduce
