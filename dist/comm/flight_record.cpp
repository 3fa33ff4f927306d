#include "tern/dist/comm/flight_record.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tern/dist/comm/forwarding_transport.h"

namespace tern {
namespace {

class Recorded final : public detail::ForwardingTransport {
 public:
  Recorded(std::unique_ptr<Transport> inner, FlightRecorder& recorder)
      : ForwardingTransport(std::move(inner)), recorder_(recorder) {}

  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) override {
    sequence_ = message.sequence;
    recorder_.sent(peer, message, bytes.size());
    inner().send(peer, message, bytes, due);
  }

  // If a wait throws, it stays in the record.

  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override {
    sequence_ = message.sequence;
    recorder_.wait(WaitRecord{peer, sequence_, Clock::now()});
    const Clock::time_point due = inner().receive(peer, message, bytes);
    recorder_.received(peer, message, bytes.size());
    return due;
  }

  void flush() override {
    recorder_.wait(WaitRecord{-1, sequence_, Clock::now()});
    inner().flush();
    recorder_.wait({});
  }

 private:
  FlightRecorder& recorder_;
  uint32_t sequence_ = 0;
};

}  // namespace

std::string to_string(OperationRecord::State state) {
  static constexpr std::array kNames = {"queued", "running", "done", "failed"};
  static_assert(kNames.size() == static_cast<size_t>(OperationRecord::State::last) + 1);
  return kNames.at(static_cast<size_t>(state));
}

OperationRecord* FlightRecorder::find(uint32_t sequence) {
  OperationRecord& slot = ring_[sequence % kKept];
  return slot.message.sequence == sequence ? &slot : nullptr;
}

void FlightRecorder::queue(const Message& message) {
  const std::lock_guard lock(mutex_);
  last_ = message.sequence;
  ring_[last_ % kKept] = {.message = message, .queued = Clock::now()};
}

void FlightRecorder::note(uint32_t sequence, OperationRecord::State state, Clock::time_point OperationRecord::*time) {
  const std::lock_guard lock(mutex_);
  if (OperationRecord* const record = find(sequence)) {
    record->state = state;
    record->*time = Clock::now();
  }
}

void FlightRecorder::run(uint32_t sequence, const std::function<void()>& operation) {
  start(sequence, operation);
  end(sequence, OperationRecord::State::done);
}

void FlightRecorder::start(uint32_t sequence, const std::function<void()>& operation) {
  note(sequence, OperationRecord::State::running, &OperationRecord::started);
  try {
    operation();
  } catch (...) {
    end(sequence, OperationRecord::State::failed);
    throw;
  }
}

void FlightRecorder::end(uint32_t sequence, OperationRecord::State state) {
  note(sequence, state, &OperationRecord::ended);
}

void FlightRecorder::sent(int peer, const Message& message, size_t bytes) {
  const std::lock_guard lock(mutex_);
  LinkRecord& link = links_[static_cast<size_t>(peer)];
  ++link.messages_sent;
  link.bytes_sent += bytes;
  if (OperationRecord* const record = find(message.sequence)) {
    record->sent += bytes;
    record->targets |= rank_bit(peer);
  }
}

void FlightRecorder::received(int peer, const Message& message, size_t bytes) {
  const std::lock_guard lock(mutex_);
  wait_.reset();
  LinkRecord& link = links_[static_cast<size_t>(peer)];
  ++link.messages_received;
  link.bytes_received += bytes;
  if (OperationRecord* const record = find(message.sequence)) {
    record->received += bytes;
    record->sources |= rank_bit(peer);
  }
}

void FlightRecorder::wait(std::optional<WaitRecord> wait) {
  const std::lock_guard lock(mutex_);
  wait_ = wait;
}

FlightRecord FlightRecorder::record(int rank, const JobState& job) const {
  FlightRecord record = {.rank = rank, .size = static_cast<int>(links_.size()), .job = job};
  record.links.resize(links_.size());  // no operation waits for memory
  record.operations.reserve(kKept);
  const std::lock_guard lock(mutex_);
  record.taken = Clock::now();
  record.wait = wait_;
  record.links = links_;
  for (uint32_t sequence = last_ - std::min<uint32_t>(last_, kKept); sequence < last_; ++sequence)
    record.operations.push_back(ring_[(sequence + 1) % kKept]);
  return record;
}

std::unique_ptr<Transport> make_recorded(std::unique_ptr<Transport> transport, FlightRecorder& recorder) {
  return std::make_unique<Recorded>(std::move(transport), recorder);
}

}  // namespace tern
