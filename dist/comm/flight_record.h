#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tern/dist/comm/transport.h"

namespace tern {

/// An operation of one rank. The times are those of the rank's steady clock.
struct OperationRecord {
  enum class State : uint8_t { queued, running, done, failed, last = failed };

  Message message = {};
  State state = State::queued;
  Clock::time_point queued = {}, started = {}, ended = {};  ///< the clock's epoch: not yet
  uint64_t sent = 0, received = 0;                          ///< bytes in messages, without their headers
  uint64_t targets = 0, sources = 0;  ///< bit r is set if a message went to rank r, or came from rank r
};
std::string to_string(OperationRecord::State state);
constexpr uint64_t rank_bit(int rank) { return uint64_t{1} << rank; }

/// The messages of all operations between a rank and a peer. Bytes are those in messages, without their headers.
struct LinkRecord {
  uint64_t messages_sent = 0, bytes_sent = 0;          ///< given to the transport
  uint64_t messages_received = 0, bytes_received = 0;  ///< whole messages
};

/// A wait of a rank for another.
struct WaitRecord {
  int peer = -1;          ///< whose message it waits for; -1: until others have taken its own messages
  uint32_t sequence = 0;  ///< number of the operation
  Clock::time_point since = {};
};

/// What a rank did last.
struct FlightRecord {
  int rank = 0, size = 1;
  JobState job = {};
  Clock::time_point taken = {};  ///< the time of this record
  std::optional<WaitRecord> wait = {};
  std::vector<LinkRecord> links = {};            ///< by peer
  std::vector<OperationRecord> operations = {};  ///< the last ones, the oldest first
};

/// The last operations of a rank's communicator, kept all the time. Owned by the communicator. Thread-safe.
class FlightRecorder {
 public:
  static constexpr size_t kKept = 1000;

  explicit FlightRecorder(int ranks) : links_(static_cast<size_t>(ranks)), ring_(kKept) {}

  /// The operation is called. Operations have the numbers 1, 2, 3, ...
  void queue(const Message& message);
  /// Runs the operation, and records when it begins and how it ends.
  void run(uint32_t sequence, const std::function<void()>& operation);
  /// The same for an operation that goes on after the call, until `end`. If the call throws, the operation has failed.
  void start(uint32_t sequence, const std::function<void()>& operation);
  void end(uint32_t sequence, OperationRecord::State state);
  void sent(int peer, const Message& message, size_t bytes);
  void received(int peer, const Message& message, size_t bytes);
  /// From now on, the rank waits; without a value, it does not.
  void wait(std::optional<WaitRecord> wait);
  /// The record of `rank`, now.
  FlightRecord record(int rank, const JobState& job) const;

 private:
  void note(uint32_t sequence, OperationRecord::State state, Clock::time_point OperationRecord::*time);
  OperationRecord* find(uint32_t sequence);

  mutable std::mutex mutex_;
  std::optional<WaitRecord> wait_;
  std::vector<LinkRecord> links_;
  std::vector<OperationRecord> ring_;  // operation s is at s % kKept
  uint32_t last_ = 0;
};

/// A transport that records the messages of another one. `recorder` must outlive it.
std::unique_ptr<Transport> make_recorded(std::unique_ptr<Transport> transport, FlightRecorder& recorder);

}  // namespace tern
