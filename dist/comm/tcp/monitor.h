#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/tcp/frame.h"
#include "tern/dist/comm/tcp/link_watch.h"

namespace tern::detail {

/// A whole control frame; true once it has left. An Error if `text` is longer than `kMaxControlText`.
bool write_control(Socket& socket, Frame frame, std::string_view text, Clock::time_point deadline);
/// Takes the first frame off `inbox` if there is one, checked; its payload goes to `text`.
bool take_control(std::vector<std::byte>& inbox, Frame& frame, std::string& text);
/// Far more than anything that ranks have to say.
inline constexpr size_t kMaxControlText = 1 << 20;

/// Watches over the other ranks, from a thread of its own: rank 0 has a link to each rank, and the others one to rank
/// 0, which hears of every failure, settles the first cause and tells it to all. A link carries signs of life and the
/// cause of the end, and never a tensor, so that nothing stalls it. Owned by a transport; thread-safe.
class Monitor {
 public:
  /// `ledger` and `own_links` outlive it.
  Monitor(int rank, int size, uint32_t epoch, const Deadlines& deadlines, Ledger& ledger, const LinkCounts& own_links);
  /// Says goodbye.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// From now on `peer` gets signs of life over `socket`, and has to give some.
  void watch(int peer, Socket socket);
  /// What errors call a rank: "rank 2 (node7, process 4711)" instead of "rank 2".
  void set_name(int rank, std::string name);
  /// Rank 0 tells all others who is in the job.
  void send_members(std::string_view list);
  /// The others wait for that word. The job's failure if rank 0 does not give it in time.
  std::string receive_members(Clock::time_point deadline);

  /// A descriptor that turns readable once the job has failed.
  int failed_descriptor() const { return failed_; }
  void throw_if_failed();
  /// The same, also if a rank that has a link to this one left longer than `dead_after` ago.
  void throw_if_deserted();
  /// This rank has come to an operation.
  void reach(const Message& message);
  /// Reports what `peer` did, and throws the cause that all ranks give.
  [[noreturn]] void fail(int peer, const std::string& cause);
  /// The same if nothing came from it for too long.
  [[noreturn]] void fail_stalled(int peer);
  /// Rank 0 ends the job with a whole sentence, and throws what all ranks say.
  [[noreturn]] void fail_all(const std::string& sentence);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Link {
    int peer = 0;
    Socket socket;
    std::vector<std::byte> inbox = {};
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
  std::condition_variable changed_;  // failure_, members_ or who left
  std::vector<std::string> names_;   // by rank
  std::vector<Link> links_;
  std::vector<Progress> progress_;
  Ledger& ledger_;
  const LinkCounts& own_links_;
  LinkWatch watch_;
  Message current_;
  std::optional<std::string> members_;
  std::string failure_;  // what all ranks say; empty while all is well
  bool ending_ = false;
  int wake_ = -1, failed_ = -1;  // event descriptors
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace tern::detail
