#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/tcp/clock_watch.h"
#include "tern/dist/comm/tcp/handshake.h"
#include "tern/dist/comm/tcp/link_watch.h"

namespace tern::detail {

/// Sends a whole control frame. Returns false if it is not sent by `deadline`. Throws Error if `text` is longer than
/// `kMaxControlText`.
bool write_control(Connection& connection, Frame frame, std::string_view text, Clock::time_point deadline);
/// Takes the first frame out of `inbox`, checks that it is the next one of `seal`, and puts its payload into `text`.
/// Returns false if no whole frame is there.
bool take_control(std::vector<std::byte>& inbox, FrameSeal& seal, Frame& frame, std::string& text);
/// Far more than any control text needs.
inline constexpr size_t kMaxControlText = 1 << 20;

/// Watches the other ranks, on its own thread. Rank 0 has a link to each rank, and every other rank has a link to rank
/// 0. Rank 0 hears of every failure, settles the first cause and sends it to all ranks. A link carries heartbeats and
/// the cause of the end, and never a tensor, so that nothing stalls it. Owned by a transport. Thread-safe.
class Monitor {
 public:
  /// `ledger` and `own_links` outlive the Monitor.
  Monitor(int rank, int size, uint32_t epoch, const Deadlines& deadlines, Ledger& ledger, const LinkCounts& own_links);
  /// Sends goodbye on all links.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// From now on, exchanges heartbeats with `peer`.
  void watch(int peer, Connection connection);
  /// The name of a rank in errors: "rank 2 (node7, process 4711)" instead of "rank 2".
  void set_name(int rank, std::string name);
  /// The name of the job, in `state`.
  void set_job(std::string name);
  JobState state();
  /// On rank 0: sends the list of the job's members to all other ranks.
  void send_members(std::string_view list);
  /// On the other ranks: waits for that list. Throws the job's failure if rank 0 does not send it by `deadline`.
  std::string receive_members(Clock::time_point deadline);

  /// A descriptor that becomes readable when the job fails.
  int failed_descriptor() const { return failed_; }
  void throw_if_failed();
  /// Like `throw_if_failed`, but throws also if a rank with a link to this rank left longer than `dead_after` ago.
  void throw_if_deserted();
  /// Tells that this rank has reached an operation.
  void reach(const Message& message);
  /// Reports what `peer` did, and throws the cause that all ranks give.
  [[noreturn]] void fail(int peer, const std::string& cause);
  /// Reports that nothing came from `peer` for too long, and throws the cause that all ranks give.
  [[noreturn]] void fail_stalled(int peer);
  /// On rank 0: ends the job with a whole sentence, and throws it as all ranks do.
  [[noreturn]] void fail_all(const std::string& sentence);

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// The control connection to one peer.
  struct Link {
    int peer = 0;
    Connection connection;
    std::vector<std::byte> inbox = {};
    ClockWatch clock = {};
    Clock::time_point heard = Clock::now();
    bool left = false;
  };

  void run();
  void read(Link& link);
  void handle(Link& link, const Frame& frame, const std::string& text);
  void beat();
  void look_after(Link& link);
  void lose(Link& link, const std::string& cause);
  void settle(const std::string& failure);
  void settle(int peer, const std::string& cause, int witness, const Message& during);
  [[noreturn]] void report(int peer, const std::string& cause);
  void write(Link& link, FrameType type, std::string_view text);

  const int rank_;
  const uint32_t epoch_;
  const Deadlines deadlines_;

  std::mutex mutex_;
  std::condition_variable changed_;  // failure_, members_ or a link's `left` changed
  std::string job_;
  std::vector<std::string> names_;  // by rank
  std::vector<Link> links_;
  std::vector<Progress> progress_;
  Ledger& ledger_;
  const LinkCounts& own_links_;
  LinkWatch watch_;
  Message current_;
  std::optional<std::string> members_;
  std::string failure_;  // the text that all ranks give; empty while the job runs
  Clock::time_point failed_at_;
  bool ending_ = false;
  int wake_ = -1, failed_ = -1;  // event descriptors
  std::thread thread_;           // last: it uses all members above
};

}  // namespace tern::detail
