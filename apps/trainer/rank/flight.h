#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "tern/dist/comm/communicator.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// The folder of flight records: that of --checkpoint, or that of the --log file; empty without both.
std::filesystem::path flight_folder(const TrainSettings& settings);
/// The files of flight records in `folder`.
std::vector<std::filesystem::path> flight_files(const std::filesystem::path& folder);

/// What a file of a flight record holds. Its name is "flight-JOB-RANK.json".
struct FlightFile {
  std::string host = {};          ///< the rank's machine
  int64_t process = 0;            ///< the rank's process id
  std::string written = {};       ///< time in UTC, by the machine's calendar
  Clock::duration calendar = {};  ///< nanoseconds since 1970 by that calendar, minus the rank's steady clock
  FlightRecord record = {};
};
/// Writes the file into `folder`, and makes the folder if it is missing. Returns the file's path. Throws InputError
/// with the path and the reason.
std::filesystem::path write_flight_file(const std::filesystem::path& folder, const FlightRecord& record);
/// Throws InputError with the path and the reason.
FlightFile read_flight_file(const std::filesystem::path& path);

/// What a rank does, or did last: "all_reduce_sum 7 of 1000 f32 runs for 2.1 s and waits for rank 3".
std::string last_operation(const FlightRecord& record);

/// Writes the flight record of a rank when its job fails after the start of training, and on SIGUSR1. Without a folder,
/// it writes the last operation to stderr. Its own thread does so: a rank that hangs has a record, too. A rank owns
/// one; the communicator must outlive it.
class FlightWatch {
 public:
  /// If `tells`, says on stderr where the record is.
  FlightWatch(const Communicator& communicator, std::filesystem::path folder, bool tells);
  /// Writes the record if the job has failed.
  ~FlightWatch();
  FlightWatch(const FlightWatch&) = delete;
  FlightWatch& operator=(const FlightWatch&) = delete;

  /// Training starts. A job that fails before was refused, and leaves no files.
  void begin() { trains_ = true; }

 private:
  void run();
  void look() noexcept;
  void write(const FlightRecord& record);

  const Communicator& communicator_;
  const std::filesystem::path folder_;
  const bool tells_;
  LineWriter err_;  // its own, because the rank's thread uses another
  int64_t wishes_;  // of a user, that have been granted
  bool written_ = false;
  std::atomic<bool> trains_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all members above
};

}  // namespace tern::trainer
