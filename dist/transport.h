#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tern/dist/ledger.h"
#include "tern/dist/message.h"

namespace tern {

/// How long ranks bear with each other.
struct Deadlines {
  Clock::duration heartbeat = std::chrono::seconds(1);    ///< between two signs of life
  Clock::duration dead_after = std::chrono::seconds(5);   ///< of silence; thrice that of a data connection's
  Clock::duration operation = std::chrono::seconds(300);  ///< in which a wait must see progress
  Clock::duration handshake = std::chrono::seconds(1);    ///< in which a connection must have proved itself
  Clock::duration rendezvous = std::chrono::seconds(60);  ///< in which all ranks must have joined
  Clock::duration note = std::chrono::seconds(10);        ///< between two notes on who is waited for at the start
};

/// Moves ordered bytes between the ranks of a job and knows no tensors: between two ranks, messages arrive in the order
/// in which they were sent. Used by one thread at a time, apart from the last functions. Every wait has a deadline;
/// whatever goes wrong is a PeerError, the same on all ranks, that names the rank and the cause, and every later call
/// throws it again.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Queues a message and does not wait: `bytes` must stay as they are until `flush` has returned, or until something
  /// arrived that the receiver could only send after it had them. It is not to be delivered before `due`.
  virtual void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due = {}) = 0;
  /// Waits for the next message from `peer`, which must be `message` and fill `bytes`; queued sends go on meanwhile.
  /// Returns its due time.
  virtual Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) = 0;
  /// Waits until nothing that was queued is needed any more.
  virtual void flush() = 0;
  /// Lets time pass, while queued sends go on.
  virtual void idle_until(Clock::time_point time) = 0;

  virtual Traffic traffic() const = 0;

  // For a library that moves tensors of its own accord in this rank's name; from any thread.

  /// This rank has come to the operation.
  virtual void reach(const Message& message) = 0;
  /// Throws where the job has failed, or a rank left it longer than `dead_after` ago, which now waits for nobody.
  virtual void throw_if_failed() = 0;
  /// Ends the job by what went wrong on this rank, or, where `cause` is empty, for want of progress.
  [[noreturn]] virtual void fail(const std::string& cause) = 0;
};

}  // namespace tern
