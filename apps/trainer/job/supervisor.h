#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tern/trainer/job/child.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/rank/pulse.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Runs the ranks of a job as children of this process, and does nothing else. It copies their output, forwards a
/// user's signals, and ends ranks that do not end with the others. If a rank is lost, it restarts all of them. It ends
/// after them, and never waits for a reader of its output. One per process, which must have a single thread.
class Supervisor {
 public:
  /// `argv` is this program's; `name` begins the supervisor's own messages. `settings`, `console` and `argv` must
  /// outlive this.
  Supervisor(std::string name, const TrainSettings& settings, Console& console, char** argv);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Returns the exit code of the job: 0, or that of the first cause of its end; 3 if a rank was lost; 130 if a rank
  /// was lost after a signal.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void start(uint32_t epoch);
  int watch();
  void wait() const;
  void take_signals();
  void take_signal(int signal);
  void reap();
  void note_end(const Child& child);
  void tell_last_words(Child& child);
  void tell_of_ends();
  int exit_code() const;
  std::optional<Clock::time_point> due() const;
  std::optional<Clock::time_point> last_progress() const;
  void end_stragglers();
  bool any_running() const;
  void say(const std::string& sentence) const;

  std::string name_;
  const TrainSettings& settings_;
  const Clock::duration patience_;  ///< how long ranks may run after one has failed
  const Clock::duration grace_;     ///< how long ranks may run after a signal
  Console& console_;
  char** argv_;
  std::string token_;
  int signals_ = -1;  ///< descriptor that reads the signals
  std::unique_ptr<PulseMemory> pulses_;
  std::vector<std::unique_ptr<Child>> children_;
  std::optional<int> cause_;  ///< exit code of the first cause
  bool lost_ = false;         ///< a rank ended because of another
  /// When a rank failed; when a rank ended because of a signal to it; when a signal came to this process.
  std::optional<Clock::time_point> failed_, interrupted_, asked_;
  bool impatient_ = false;                      ///< a second signal came
  std::set<std::string> told_;                  ///< printed messages of ranks with bad input
  std::map<std::string, const Child*> echoes_;  ///< messages of ranks that ended because of others
};

}  // namespace tern::trainer
