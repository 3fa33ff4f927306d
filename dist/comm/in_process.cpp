#include "tern/dist/comm/in_process.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "tern/dist/comm/failure.h"

namespace tern {
namespace {

/// A message under way. The sender still owns the bytes.
struct Parcel {
  Message message;
  std::span<const std::byte> bytes;
  Clock::time_point due;
};

/// The queue from one rank to another. The group's mutex guards it, except the bytes of a parcel that a receiver
/// copies.
struct Mailbox {
  std::deque<Parcel> parcels;
  bool copying = false;
};

/// The state that all ranks share and own. Its mutex guards it.
struct Group {
  Group(int ranks, const Deadlines& limits)
      : size(ranks), deadlines(limits), boxes(ranks * ranks), progress(ranks), left(ranks), changed(ranks) {}

  const int size;
  const Deadlines deadlines;
  const std::string job = detail::make_job_name();
  std::mutex mutex;
  std::vector<Mailbox> boxes;  // [from * size + to]
  std::vector<detail::Progress> progress;
  std::vector<std::optional<Clock::time_point>> left;
  std::string failure;                           // the first cause; empty while the job runs
  Clock::time_point failed;                      // when it came
  std::vector<std::condition_variable> changed;  // by the rank that waits

  Mailbox& box(int from, int to) { return boxes[static_cast<size_t>(from * size + to)]; }
};

/// One rank's end of the group. One thread at a time may use it.
class InProcess final : public Transport {
 public:
  InProcess(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~InProcess() override;

  int rank() const override { return rank_; }
  int size() const override { return group_->size; }
  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) override;
  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override;
  void flush() override;
  void idle_until(Clock::time_point time) override;
  Traffic traffic() const override { return ledger_.traffic(); }
  JobState state() const override;
  void reach(const Message& message) override;
  void throw_if_failed() override;
  [[noreturn]] void fail(const std::string& cause) override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void settle(int peer, const std::string& cause);
  [[noreturn]] void fail(Lock& lock, int peer, const std::string& cause);
  template <class Ready>
  void wait(Lock& lock, int peer, const Ready& ready);
  void withdraw(Lock& lock);
  void begin(const Message& message, int peer);

  std::shared_ptr<Group> group_;
  int rank_;
  Message current_;
  Ledger ledger_;
};

InProcess::~InProcess() {
  Lock lock(group_->mutex);
  withdraw(lock);
  group_->left[rank_] = Clock::now();
  for (auto& changed : group_->changed) changed.notify_all();
}

/// Makes the first cause the cause of the group. The caller holds the mutex.
void InProcess::settle(int peer, const std::string& cause) {
  if (group_->failure.empty()) {
    group_->failure = join({"rank ", peer, " ", cause, " (seen by rank ", rank_, " in ", current_, ")"});
    group_->failed = Clock::now();
  }
  for (auto& changed : group_->changed) changed.notify_all();
}

void InProcess::fail(Lock& lock, int peer, const std::string& cause) {
  settle(peer, cause);
  withdraw(lock);
  throw PeerError(group_->failure);
}

/// Waits until `ready`. Throws if the group fails, if `peer` leaves or if the timeout passes.
template <class Ready>
void InProcess::wait(Lock& lock, int peer, const Ready& ready) {
  const auto deadline = Clock::now() + group_->deadlines.operation;
  while (!ready()) {
    if (!group_->failure.empty()) fail(lock, peer, "");
    if (group_->left[peer]) fail(lock, peer, "has left");
    if (Clock::now() >= deadline) {
      const auto fault = detail::find_stall(group_->progress, peer, current_.sequence, group_->deadlines.operation);
      fail(lock, fault.rank, fault.cause);
    }
    group_->changed[rank_].wait_until(lock, deadline);
  }
}

/// Removes this rank's messages that nobody has received, because their bytes become invalid.
void InProcess::withdraw(Lock& lock) {
  for (int peer = 0; peer < size(); ++peer) {
    Mailbox& box = group_->box(rank_, peer);
    group_->changed[rank_].wait(lock, [&] { return !box.copying; });
    box.parcels.clear();
  }
}

void InProcess::begin(const Message& message, int peer) {
  check(peer >= 0 && peer < size() && peer != rank_, message, ": rank ", rank_, " with rank ", peer, " of ", size());
  current_ = message;
  group_->progress[rank_].reach(message.sequence);
}

void InProcess::send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) {
  Lock lock(group_->mutex);
  begin(message, peer);
  if (!group_->failure.empty()) fail(lock, peer, "");
  group_->box(rank_, peer).parcels.push_back({message, bytes, due});
  group_->changed[peer].notify_all();
  ledger_.sent(bytes.size());
  if (message.account == Account::payload) ledger_.sent_payload(bytes.size());
}

Clock::time_point InProcess::receive(int peer, const Message& message, std::span<std::byte> bytes) {
  Lock lock(group_->mutex);
  begin(message, peer);
  Mailbox& box = group_->box(peer, rank_);
  wait(lock, peer, [&] { return !box.parcels.empty(); });
  const Parcel parcel = box.parcels.front();
  if (!agree(parcel.message, message) || parcel.bytes.size() != bytes.size())
    fail(lock, peer,
         join({"sends ", parcel.bytes.size(), " bytes in ", parcel.message, ", rank ", rank_, " expects ", bytes.size(),
               " in ", message}));
  box.copying = true;
  lock.unlock();
  if (!bytes.empty()) std::memcpy(bytes.data(), parcel.bytes.data(), bytes.size());
  lock.lock();
  box.copying = false;
  box.parcels.pop_front();
  group_->changed[peer].notify_all();
  ledger_.received(bytes.size());
  if (message.account == Account::payload) ledger_.received_payload(bytes.size());
  return parcel.due;
}

void InProcess::flush() {
  Lock lock(group_->mutex);
  if (!group_->failure.empty()) fail(lock, rank_, "");  // an operation without elements only comes here
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_) wait(lock, peer, [&] { return group_->box(rank_, peer).parcels.empty(); });
}

void InProcess::idle_until(Clock::time_point time) {
  Lock lock(group_->mutex);
  while (Clock::now() < time) {
    if (!group_->failure.empty()) fail(lock, rank_, "");
    group_->changed[rank_].wait_until(lock, time);
  }
}

/// All ranks have one clock.
JobState InProcess::state() const {
  const Lock lock(group_->mutex);
  return {.job = group_->job, .failure = group_->failure, .failed = group_->failed, .clock = ClockOffset{}};
}

void InProcess::reach(const Message& message) {
  const Lock lock(group_->mutex);
  current_ = message;
  group_->progress[rank_].reach(message.sequence);
}

void InProcess::throw_if_failed() {
  const Lock lock(group_->mutex);
  const auto long_ago = Clock::now() - group_->deadlines.dead_after;
  for (int peer = 0; peer < size(); ++peer)
    if (group_->left[peer] && *group_->left[peer] < long_ago) settle(peer, "has left");
  if (!group_->failure.empty()) throw PeerError(group_->failure);
}

void InProcess::fail(const std::string& cause) {
  const Lock lock(group_->mutex);
  detail::Fault fault = {rank_, cause};
  if (cause.empty())
    fault = detail::find_stall(group_->progress, rank_, current_.sequence, group_->deadlines.operation);
  settle(fault.rank, fault.cause);
  throw PeerError(group_->failure);
}

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process(int size, const Deadlines& deadlines) {
  check_input(size >= 1 && size <= kMaxRanks, "in-process: ", size, " ranks, expected 1 to ", kMaxRanks);
  const auto group = std::make_shared<Group>(size, deadlines);
  std::vector<std::unique_ptr<Transport>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<InProcess>(group, rank));
  return ranks;
}

}  // namespace tern
