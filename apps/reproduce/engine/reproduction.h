#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/run_folder.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/run/interrupt.h"

namespace tern::reproduce {

/// An experiment on its way: makes the runs that its folder lacks, one after the other, and writes what they say so far
/// after each. One at a time in a folder; used by one thread.
class Reproduction {
 public:
  /// An InputError where another process is at work in the folder, or left something else there.
  Reproduction(const ExperimentEntry& entry, const ReproduceCommand& command, trainer::Console& console);
  ~Reproduction();
  Reproduction(const Reproduction&) = delete;
  Reproduction& operator=(const Reproduction&) = delete;

  /// To the end. Throws Interrupted where a person stopped it, once the run under way has kept a checkpoint, and an
  /// error with a run's own words where one failed.
  void run();

 private:
  void lock();
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
  int lock_ = -1;
  std::vector<RunFolder> folders_;  ///< of runs_
  Results results_;
};

}  // namespace tern::reproduce
