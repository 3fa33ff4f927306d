#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tern/core/dtype.h"
#include "tern/dist/comm/ledger.h"

namespace tern {

using Clock = std::chrono::steady_clock;

/// An operation of a communicator. The values are numbers on the wire: append new ones and never reorder.
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

/// The account of bytes in the ledger: data of the training method, or extra bytes.
enum class Account : uint8_t { payload, overhead };

/// The label of a message. Both ends know it and must agree on it.
struct Message {
  uint32_t sequence = 0;  ///< number of the operation on this communicator, from 1
  Operation operation = Operation::none;
  DType dtype = DType::u8;
  uint64_t count = 0;  ///< elements of the whole operation; this message may carry a piece; 0 if `parts_may_differ`
  Account account = Account::payload;
};

/// Whether ranks may give different numbers of elements, of which one rank does not know the total.
bool parts_may_differ(Operation operation);

/// For example "all_reduce_sum 7 of 1000 f32", or "shift 8 of u8".
std::string to_string(const Message& message);

/// Whether two labels have the same sequence number, operation, dtype and count.
bool agree(const Message& a, const Message& b);

/// Timeouts between ranks. A data connection that stands still counts as lost after three times `dead_after`.
struct Deadlines {
  Clock::duration heartbeat = std::chrono::seconds(1);    ///< between two heartbeats
  Clock::duration dead_after = std::chrono::seconds(5);   ///< without a heartbeat: the rank counts as dead
  Clock::duration operation = std::chrono::seconds(300);  ///< in which a wait must see progress
  Clock::duration handshake = std::chrono::seconds(5);    ///< in which a connection must prove that it has the token
  Clock::duration rendezvous = std::chrono::seconds(60);  ///< in which all ranks must join
  Clock::duration note = std::chrono::seconds(10);        ///< between two notes about missing ranks at the start
};

/// The difference between the steady clocks of two ranks.
struct ClockOffset {
  Clock::duration offset = {};  ///< rank 0's clock minus this rank's
  Clock::duration error = {};   ///< the offset is wrong by at most this
};

/// What a transport knows of its job.
struct JobState {
  std::string job = {};                   ///< as `make_job_name` makes it, the same on all ranks
  std::string failure = {};               ///< why the job has failed; empty while it runs
  Clock::time_point failed = {};          ///< when this rank heard of it
  std::optional<ClockOffset> clock = {};  ///< unset: not measured yet
};

/// Moves bytes between the ranks of a job, without knowledge of tensors. Between two ranks, messages arrive in the
/// order in which they were sent. One thread at a time may use it, except for `traffic`, `state` and the last three
/// functions. Every wait has a timeout. Every failure is a PeerError that names the rank and the cause, the same on all
/// ranks. Every later call throws it again.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Queues a message and does not wait. `bytes` must not change until `flush` returns. A reply that the receiver can
  /// only send after it has the bytes also ends this time. The message is not delivered before `due`.
  virtual void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due = {}) = 0;
  /// Waits for the next message from `peer`, which must be `message` and fill `bytes`. Queued sends continue meanwhile.
  /// Returns the message's due time.
  virtual Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) = 0;
  /// Waits until the bytes of all queued messages are no longer needed.
  virtual void flush() = 0;
  /// Waits until `time`, while queued sends continue.
  virtual void idle_until(Clock::time_point time) = 0;

  virtual Traffic traffic() const = 0;
  virtual JobState state() const = 0;

  // For a library that moves tensors itself on behalf of this rank. Any thread may call these functions.

  /// Tells that this rank has reached the operation.
  virtual void reach(const Message& message) = 0;
  /// Throws if the job has failed, or if a rank left the job longer than `dead_after` ago, because that rank will not
  /// take part in any operation.
  virtual void throw_if_failed() = 0;
  /// Ends the job with an error of this rank. If `cause` is empty, the cause is missing progress.
  [[noreturn]] virtual void fail(const std::string& cause) = 0;
};

}  // namespace tern

namespace tern::detail {

/// Another name for every start of a job: the time in UTC and a random number, for example "20261128T131254Z-5e3f".
std::string make_job_name();
/// Throws Error if `name` cannot be such a name.
void check_job_name(const std::string& name);

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

}  // namespace tern::detail
