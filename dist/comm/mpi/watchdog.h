#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/mpi/library.h"
#include "tern/dist/comm/transport.h"

namespace tern::mpi {

/// An operation as the ranks compare it. It travels as bytes between machines of one kind.
struct Label {
  uint64_t count = 0;
  uint32_t sequence = 0;
  int32_t root = 0;  ///< 0 if the operation has none
  Operation operation = Operation::none;
  DType dtype = DType::u8;

  friend bool operator==(const Label&, const Label&) = default;
};

/// For example "calls broadcast 7 of 1000 f32 from rank 2". A rank with a number but no operation "leaves".
std::string describe(const Label& label);

/// The difference between the operations of two ranks that should be the same one.
detail::Fault find_difference(int rank, const Label& label, int other, const Label& others);

/// A thread of this rank that ends the job if it makes no progress. It tells the watchdogs of the other ranks at each
/// heartbeat what this rank does, and hears what they do. Thread-safe.
class Watchdog {
 public:
  explicit Watchdog(const Deadlines& deadlines);
  /// Call it after an operation that all ranks have ended. Waits for the last words of all.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// This rank begins an operation.
  void enter(const Label& label);
  /// It has ended.
  void leave();
  /// Ends the job with a fault that other ranks may find at about the same time. The first of them prints it. Any
  /// thread may call it.
  [[noreturn]] void end_job(const detail::Fault& fault);
  /// Ends the job with an error that this rank found inside an operation.
  [[noreturn]] void fail(const std::string& cause);
  /// The sentence with which this rank ends the job, and since when; "" while the job runs. Other threads have a moment
  /// to read it before the job ends.
  std::pair<std::string, Clock::time_point> failure() const;

 private:
  struct Beat {
    Label label;
    bool last = false;
  };
  /// What this rank knows of another one.
  struct Peer {
    Beat sent, heard, arriving;
    MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
    Clock::time_point heard_at = Clock::now();
  };

  void watch();
  void tell(const Label& mine);
  void listen();
  void expect(int rank);
  void hear(int rank);
  void note(const std::string& failure);
  std::optional<detail::Fault> find_fault(const Label& mine, bool waits, Clock::time_point since);
  void await(MPI_Request& request, int rank);
  void part();

  Deadlines deadlines_;
  Group group_;
  int rank_, size_;
  std::vector<Peer> peers_;                 ///< with an unused one for this rank
  std::vector<detail::Progress> progress_;  ///< of all ranks, as this one sees it
  Clock::time_point looked_ = Clock::now();

  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable ended_;
  Label label_;
  Clock::time_point since_ = Clock::now();
  bool waits_ = false, ends_ = false;
  std::string failure_;
  Clock::time_point failed_at_ = {};

  std::thread thread_;  // last: it uses the other members
};

}  // namespace tern::mpi
