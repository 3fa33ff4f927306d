#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/trainer/job/child.h"
#include "tern/apps/trainer/settings.h"

namespace tern {

/// Runs the ranks of a job as children of this process and does nothing else: relays their output and the signals that
/// a person sends, ends those that do not end with the others, starts all of them anew where one was lost, and outlives
/// them. One per process, which has a single thread.
class Supervisor {
 public:
  /// `argv` is this program's; `name` begins its own sentences.
  Supervisor(std::string name, const TrainSettings& settings, char** argv);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// The exit code of the job: 0, or that of the first cause of its end; 3 where a rank was lost.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void start(uint32_t epoch);
  int watch();
  void wait() const;
  void take_signals();
  void reap();
  void note_end(const Child& child);
  std::optional<Clock::time_point> due() const;
  void end_stragglers();
  bool any_running() const;
  void say(const std::string& sentence) const;

  std::string name_;
  const TrainSettings& settings_;
  const Clock::duration patience_;  ///< with ranks after one has failed
  char** argv_;
  std::string token_;
  int signals_ = -1;  ///< descriptor of the signals below
  std::vector<std::unique_ptr<Child>> children_;
  std::optional<int> cause_;                   ///< the exit code of the first cause
  bool lost_ = false;                          ///< a rank ended because of another
  std::optional<Clock::time_point> deadline_;  ///< for those that still run
  int interrupts_ = 0;                         ///< signals that asked for the end
};

}  // namespace tern
