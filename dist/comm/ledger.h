#pragma once

#include <atomic>
#include <cstdint>

namespace tern {

/// Bytes that one rank has moved.
struct Traffic {
  uint64_t sent_payload = 0;
  uint64_t sent_overhead = 0;  ///< frames, handshakes, heartbeats, and messages on the overhead account
  uint64_t received_payload = 0;
  uint64_t received_overhead = 0;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.sent_payload + b.sent_payload, a.sent_overhead + b.sent_overhead, a.received_payload + b.received_payload,
          a.received_overhead + b.received_overhead};
}

/// The traffic between two readings of a ledger.
inline Traffic operator-(const Traffic& later, const Traffic& earlier) {
  return {later.sent_payload - earlier.sent_payload, later.sent_overhead - earlier.sent_overhead,
          later.received_payload - earlier.received_payload, later.received_overhead - earlier.received_overhead};
}

/// Counts one rank's bytes as they move: all bytes, and the payload among them. Owned by a transport. Thread-safe; the
/// counts are exact when no bytes are in motion.
class Ledger {
 public:
  void sent(uint64_t bytes) { sent_ += bytes; }
  void received(uint64_t bytes) { received_ += bytes; }
  /// Marks `bytes` of the sent or received bytes as payload.
  void sent_payload(uint64_t bytes) { sent_payload_ += bytes; }
  void received_payload(uint64_t bytes) { received_payload_ += bytes; }

  Traffic traffic() const {
    // Bytes count as payload last, so the payload is read first.
    const uint64_t sent = sent_payload_, received = received_payload_;
    return {sent, sent_ - sent, received, received_ - received};
  }

 private:
  std::atomic<uint64_t> sent_{0}, sent_payload_{0}, received_{0}, received_payload_{0};
};

}  // namespace tern
