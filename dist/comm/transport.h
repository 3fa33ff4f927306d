#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tern/core/dtype.h"
#include "tern/dist/comm/ledger.h"

namespace tern {

using Clock = std::chrono::steady_clock;

/// What a communicator does; a number on the wire: append, never reorder.
enum class Operation : uint8_t {
  none,
  broadcast,
  all_reduce_sum,
  all_reduce_max,
  reduce_scatter,
  all_gather,
  all_to_all,
  scatter,
  gather,
  barrier,
  shift,
  fan_out,
  last = fan_out
};

std::string to_string(Operation operation);

/// Whose bytes they are in the ledger: those that the training method is about, or those that come on top.
enum class Account : uint8_t { payload, overhead };

/// What both ends of a message know of it, and must agree on.
struct Message {
  uint32_t sequence = 0;  ///< number of the operation on this communicator, from 1
  Operation operation = Operation::none;
  DType dtype = DType::u8;
  uint64_t count = 0;  ///< elements of the operation, of which this message may carry a piece
  Account account = Account::payload;
};

/// "all_reduce_sum 7 of 1000 f32"
std::string to_string(const Message& message);

/// Whether two ends speak of the same operation on the same kind and number of elements.
bool agree(const Message& a, const Message& b);

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

namespace tern::detail {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

}  // namespace tern::detail
