#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/dist/comm/failure.h"

namespace tern::detail {

/// What a rank tells of its data connections: bytes since the beginning, headers included.
struct LinkReport {
  int awaited = -1;                 ///< the rank whose message it waits for; -1: none
  uint64_t received = 0;            ///< from that one
  int taker = -1;                   ///< the rank that has to take what is queued before this one goes on; -1: none
  std::vector<uint64_t> sent = {};  ///< to each rank: handed over to the network
};
std::string format(const LinkReport& report);
/// An Error where `text` is no report on `ranks` ranks.
LinkReport parse_link_report(std::string_view text, int ranks);

/// The counts behind one rank's reports. One thread moves the data and counts, another one reports.
class LinkCounts {
 public:
  explicit LinkCounts(int ranks) : sent_(static_cast<size_t>(ranks)), received_(static_cast<size_t>(ranks)) {}

  void sent(int peer, uint64_t bytes) { add(sent_[static_cast<size_t>(peer)], bytes); }
  void received(int peer, uint64_t bytes) { add(received_[static_cast<size_t>(peer)], bytes); }
  /// For a message from there; -1: nobody.
  void wait_for(int peer) { awaited_.store(peer, std::memory_order_relaxed); }
  /// Until a message is on its way there; -1: nobody.
  void wait_to_send(int peer) { taker_.store(peer, std::memory_order_relaxed); }
  LinkReport report() const;

 private:
  using Count = std::atomic<uint64_t>;
  /// One thread writes, so that no other's addition can come between.
  static void add(Count& count, uint64_t bytes) {
    count.store(count.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  std::vector<Count> sent_, received_;
  std::atomic<int> awaited_{-1}, taker_{-1};
};

/// Finds a data connection that stands still although both its ranks live: what one end has handed over is awaited at
/// the other, where nothing at all arrives. A rank that computes has nothing on its way, and of what is on a slow link
/// something arrives. Owned by a monitor: rank 0's hears all reports, the others know their own; not thread-safe.
class LinkWatch {
 public:
  explicit LinkWatch(int ranks) : ranks_(static_cast<size_t>(ranks)) {}

  void note(int rank, LinkReport report);
  /// The rank whose bytes have been missing for longer than `limit`, if there is one.
  /// Bytes count as missing from the first call on that finds them so.
  std::optional<Fault> find_lost(Clock::duration limit);
  /// A rank that has waited for `peer` for longer than `limit` and seen nothing move meanwhile.
  std::optional<int> find_waiting(int peer, Clock::duration limit) const;

 private:
  struct Rank {
    LinkReport report;
    Clock::time_point waits_since = Clock::now();         // without a byte
    std::optional<Clock::time_point> missing_since = {};  // what it awaits
  };
  uint64_t handed_over(int from, size_t to) const;

  std::vector<Rank> ranks_;
};

}  // namespace tern::detail
