#include "tern/dist/comm/flight_record.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tern {
namespace {

class Recorded final : public Transport {
 public:
  Recorded(std::unique_ptr<Transport> inner, FlightRecorder& recorder)
      : inner_(std::move(inner)), recorder_(recorder) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Traffic traffic() const override { return inner_->traffic(); }
  JobState state() const override { return inner_->state(); }
  void reach(const Message& message) override { inner_->reach(message); }
  void throw_if_failed() override { inner_->throw_if_failed(); }
  void fail(const std::string& cause) override { inner_->fail(cause); }
  void idle_until(Clock::time_point time) override { inner_->idle_until(time); }

  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) override {
    sequence_ = message.sequence;
    recorder_.sent(peer, message, bytes.size());
    inner_->send(peer, message, bytes, due);
  }

  // If a wait throws, it stays in the record.

  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override {
    sequence_ = message.sequence;
    recorder_.wait(WaitRecord{peer, sequence_, Clock::now()});
    const Clock::time_point due = inner_->receive(peer, message, bytes);
    recorder_.received(peer, message, bytes.size());
    return due;
  }

  void flush() override {
    recorder_.wait(WaitRecord{-1, sequence_, Clock::now()});
    inner_->flush();
    recorder_.wait({});
  }

 private:
  std::unique_ptr<Transport> inner_;
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

void FlightRecorder::run(uint32_t sequence, const std::function<void()>& operation) {
  using State = OperationRecord::State;
  const auto note = [this, sequence](State state, Clock::time_point OperationRecord::*time) {
    const std::lock_guard lock(mutex_);
    if (OperationRecord* const record = find(sequence)) {
      record->state = state;
      record->*time = Clock::now();
    }
  };
  note(State::running, &OperationRecord::started);
  try {
    operation();
  } catch (...) {
    note(State::failed, &OperationRecord::ended);
    throw;
  }
  note(State::done, &OperationRecord::ended);
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
  record.operations.reserve(kKept);  // no operation waits for memory
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
