#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/dist/comm/failure.h"

namespace tern::detail {

/// A rank's report on its data connections. Bytes count from the start of the job, headers included.
struct LinkReport {
  int awaited = -1;                 ///< rank whose message this rank waits for; -1: none
  uint64_t received = 0;            ///< bytes received from `awaited`
  int taker = -1;                   ///< rank that must read queued bytes before this rank continues; -1: none
  std::vector<uint64_t> sent = {};  ///< bytes given to the network, for each rank
};
std::string format(const LinkReport& report);
/// Throws Error if `text` is not a report about `ranks` ranks.
LinkReport parse_link_report(std::string_view text, int ranks);

/// The counts for one rank's reports. One thread moves the data and counts; another thread reports.
class LinkCounts {
 public:
  explicit LinkCounts(int ranks) : sent_(static_cast<size_t>(ranks)), received_(static_cast<size_t>(ranks)) {}

  void sent(int peer, uint64_t bytes) { add(sent_[static_cast<size_t>(peer)], bytes); }
  void received(int peer, uint64_t bytes) { add(received_[static_cast<size_t>(peer)], bytes); }
  /// This rank waits for a message from `peer`; -1: it does not wait.
  void wait_for(int peer) { awaited_.store(peer, std::memory_order_relaxed); }
  /// This rank waits until its message to `peer` is sent; -1: it does not wait.
  void wait_to_send(int peer) { taker_.store(peer, std::memory_order_relaxed); }
  LinkReport report() const;

 private:
  using Count = std::atomic<uint64_t>;
  /// A plain store is enough, because only one thread writes.
  static void add(Count& count, uint64_t bytes) {
    count.store(count.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  std::vector<Count> sent_, received_;
  std::atomic<int> awaited_{-1}, taker_{-1};
};

/// Finds a data connection that stands still although both ranks live. One end has sent bytes, the other end waits for
/// them, and nothing arrives. This does not report a rank that computes, because it has no bytes under way. It does not
/// report a slow connection, because some bytes arrive. A monitor owns it: rank 0's monitor has all reports, the others
/// only their own. Not thread-safe.
class LinkWatch {
 public:
  explicit LinkWatch(int ranks) : ranks_(static_cast<size_t>(ranks)) {}

  void note(int rank, LinkReport report);
  /// The rank whose bytes have been missing for longer than `limit`, if there is one. Bytes count as missing from the
  /// first call that finds them missing.
  std::optional<Fault> find_lost(Clock::duration limit);
  /// A rank that has waited for `peer` for longer than `limit` without any moved byte, if there is one.
  std::optional<int> find_waiting(int peer, Clock::duration limit) const;

 private:
  struct Rank {
    LinkReport report;
    Clock::time_point waits_since = Clock::now();         // without a byte
    std::optional<Clock::time_point> missing_since = {};  // bytes that it waits for
  };
  uint64_t handed_over(int from, size_t to) const;

  std::vector<Rank> ranks_;
};

}  // namespace tern::detail
