#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tern/dist/peer_error.h"
#include "tern/dist/socket.h"
#include "tern/dist/stall.h"
#include "tern/dist/tcp/frame.h"
#include "tern/dist/tcp/link_watch.h"

namespace tern::detail {

/// A connection that carries signs of life and the cause of the end, and never a tensor, so that nothing stalls it.
struct ControlLink {
  int peer = 0;
  Socket socket;
  std::vector<std::byte> inbox = {};
  Clock::time_point heard = Clock::now();
  bool left = false;
};

/// A whole control frame; true once it has left.
bool write_control(Socket& socket, Frame frame, std::string_view text, Clock::time_point deadline);
/// Takes the first frame off `inbox` where there is one, checked; its payload goes to `text`.
bool take_control(std::vector<std::byte>& inbox, Frame& frame, std::string& text);
inline constexpr size_t kMaxControlText = 4000;

/// Watches over the other ranks, from a thread of its own: rank 0 has a link to each rank, and the others one to rank
/// 0, which hears of every failure, settles the first cause and tells it to all. Owned by a transport; thread-safe.
class Monitor {
 public:
  /// `names[r]` is what errors call rank r; `own_links` outlive it.
  Monitor(int rank, uint32_t epoch, std::vector<ControlLink> links, std::vector<std::string> names,
          const Deadlines& deadlines, Ledger& ledger, const LinkCounts& own_links);
  /// Says goodbye.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// A descriptor that turns readable once the job has failed.
  int failed_descriptor() const { return failed_; }
  void throw_if_failed();
  /// The same, and where a rank that has a link to this one left longer than `dead_after` ago.
  void throw_if_deserted();
  /// This rank has come to an operation.
  void reach(const Message& message);
  /// Reports what `peer` did, and throws the cause that all ranks give.
  [[noreturn]] void fail(int peer, const std::string& cause);
  /// The same where nothing came from it for too long.
  [[noreturn]] void fail_stalled(int peer);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void read(ControlLink& link);
  void handle(ControlLink& link, const Frame& frame, const std::string& text);
  void beat();
  void lose(ControlLink& link, const std::string& cause);
  void settle(const std::string& failure);
  void settle(int peer, const std::string& cause, int witness, const Message& during);
  [[noreturn]] void report(int peer, const std::string& cause);
  void write(ControlLink& link, FrameType type, std::string_view text);

  const int rank_;
  const uint32_t epoch_;
  const std::vector<std::string> names_;
  const Deadlines deadlines_;

  std::mutex mutex_;
  std::condition_variable settled_;
  std::vector<ControlLink> links_;
  std::vector<Progress> progress_;
  const LinkCounts& own_links_;
  LinkWatch watch_;  // rank 0's
  Message current_;
  std::string failure_;  // what all ranks say; empty while all is well
  bool ending_ = false;
  int wake_ = -1, failed_ = -1;  // event descriptors
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace tern::detail
