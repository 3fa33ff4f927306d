#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tern/trainer/rank/flight.h"

namespace tern::advise {

/// The flight records of one start of a job, on the clock of rank 0. A value.
class Postmortem {
 public:
  using Clock = tern::Clock;

  /// The newest job in `folder`. Leaves out files that are damaged, for example because the disk was full, and says so
  /// on the page. Throws InputError if there is no job, or if all of its files are damaged.
  static Postmortem read(const std::filesystem::path& folder);
  /// `files` are of one job and different ranks. Records that are older than the others, because a rank wrote none when
  /// the others did, do not count. `damaged`: for each file that was left out, which one, and why.
  explicit Postmortem(std::vector<trainer::FlightFile> files, std::vector<std::string> damaged = {});

  const std::string& job() const { return job_; }
  int ranks() const { return ranks_; }
  /// Null if the rank left no record.
  const FlightRecord* of(int rank) const;
  /// A time of `rank` on rank 0's clock. If the rank has not measured its clock's offset, the machines' calendars give
  /// it.
  Clock::time_point common(int rank, Clock::time_point time) const;
  /// Whether the job had failed.
  bool failed() const;
  /// The time that is examined: that of the failure, or of the first record of a job that ran.
  Clock::time_point end() const { return end_; }
  /// The rank for which `rank` waited at the end. A rank whose messages others had not taken waits for one of them.
  std::optional<int> awaited(int rank) const;
  /// When that wait began.
  std::optional<Clock::time_point> waits_since(int rank) const;

  /// Who is at fault, and why.
  struct Verdict {
    std::optional<int> rank = {};  ///< unset: no rank waits for another, or too many records are missing
    std::string sentence;
  };
  const Verdict& verdict() const { return verdict_; }
  /// The verdict as a line.
  std::string headline() const;
  /// The verdict, what the ranks said, and what each of them did last.
  std::string page() const;

 private:
  void compare_clocks();
  void drop_older();
  void find_end();
  Verdict find_verdict() const;
  Verdict follow_waits() const;
  Verdict verdict_on(int rank) const;
  std::optional<int> named() const;
  std::vector<int> without_record() const;
  std::optional<WaitRecord> wait_at_end(int rank) const;
  const OperationRecord* open_at_end(int rank) const;
  bool stands() const;
  std::optional<int> last_behind() const;
  std::string fault_of(int rank) const;
  std::vector<int> circle_of(int rank) const;
  std::string fault_of_circle(const std::vector<int>& circle) const;
  std::string what_waits_for(int rank, const std::string& it) const;
  std::string older_of(int rank) const;
  std::optional<OperationRecord> last_from(int rank) const;
  std::string name_of(int rank) const;

  std::string job_;
  int ranks_ = 0;
  std::vector<std::string> damaged_;
  std::map<int, trainer::FlightFile> files_, older_;
  std::map<int, std::string> names_;
  std::map<int, Clock::duration> offsets_;  ///< rank 0's clock minus that of the rank
  Clock::time_point end_ = {};
  Verdict verdict_;
};

/// A picture of the ranks' last seconds on one time axis, as SVG. The error of each rank's clock is drawn.
std::string draw_timeline(const Postmortem& postmortem);

/// The program `advise postmortem`. Returns its exit code.
int run_postmortem(int argc, const char* const* argv);

}  // namespace tern::advise
