#pragma once

#include <atomic>
#include <cstdint>

namespace tern {

/// Bytes that one rank has moved.
struct Traffic {
  uint64_t sent_payload = 0;
  uint64_t sent_overhead = 0;  ///< frames, handshakes, heartbeats, and messages on that account
  uint64_t received_payload = 0;
  uint64_t received_overhead = 0;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.sent_payload + b.sent_payload, a.sent_overhead + b.sent_overhead, a.received_payload + b.received_payload,
          a.received_overhead + b.received_overhead};
}

/// What was moved between two looks at a ledger.
inline Traffic operator-(const Traffic& later, const Traffic& earlier) {
  return {later.sent_payload - earlier.sent_payload, later.sent_overhead - earlier.sent_overhead,
          later.received_payload - earlier.received_payload, later.received_overhead - earlier.received_overhead};
}

/// Counts one rank's bytes where they are moved: all of them, and which of them are payload. Owned by a transport;
/// thread-safe, and exact whenever no byte is in motion.
class Ledger {
 public:
  void sent(uint64_t bytes) { sent_ += bytes; }
  void received(uint64_t bytes) { received_ += bytes; }
  /// Of the bytes sent or received, these were payload.
  void sent_payload(uint64_t bytes) { sent_payload_ += bytes; }
  void received_payload(uint64_t bytes) { received_payload_ += bytes; }

  Traffic traffic() const {
    return {sent_payload_, sent_ - sent_payload_, received_payload_, received_ - received_payload_};
  }

 private:
  std::atomic<uint64_t> sent_{0}, sent_payload_{0}, received_{0}, received_payload_{0};
};

}  // namespace tern
