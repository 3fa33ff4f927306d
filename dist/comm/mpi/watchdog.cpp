#include "tern/dist/comm/mpi/watchdog.h"

#include <algorithm>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern::mpi {
namespace {

/// The time that MPI_Abort takes to end the other ranks of a machine.
constexpr auto kEnd = std::chrono::seconds(1);

/// The time in which other threads may read the failure, for example to write this rank's flight record.
constexpr auto kLastWords = std::chrono::milliseconds(400);

}  // namespace

std::string describe(const Label& label) {
  if (label.operation == Operation::none) return label.sequence == 0 ? "has no operation yet" : "leaves";
  const Message message = {
      .sequence = label.sequence, .operation = label.operation, .dtype = label.dtype, .count = label.count};
  return join({"calls ", message, label.root == 0 ? "" : join({" with root ", label.root})});
}

detail::Fault find_difference(int rank, const Label& label, int other, const Label& others) {
  return {rank, join({describe(label), ", rank ", other, " ", describe(others)})};
}

Watchdog::Watchdog(const Deadlines& deadlines)
    : deadlines_(deadlines), rank_(group_.rank()), size_(group_.size()), peers_(size_), progress_(size_) {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) expect(rank);
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Watchdog::enter(const Label& label) {
  const std::lock_guard lock(mutex_);
  label_ = label;
  since_ = Clock::now();
  waits_ = true;
}

void Watchdog::leave() {
  const std::lock_guard lock(mutex_);
  waits_ = false;
}

void Watchdog::note(const std::string& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failed_at_ = Clock::now();
    failure_ = printable(failure);
  }
  std::this_thread::sleep_for(kLastWords);
}

std::pair<std::string, Clock::time_point> Watchdog::failure() const {
  const std::lock_guard lock(mutex_);
  return {failure_, failed_at_};
}

void Watchdog::end_job(const detail::Fault& fault) {
  const std::string sentence = join({"rank ", fault.rank, " ", fault.cause});
  note(sentence);
  // Usually the first rank ends the job before the others print.
  const int before = fault.rank < rank_ ? rank_ - 1 : rank_;
  std::this_thread::sleep_for(std::min(before, 3) * std::max<Clock::duration>(deadlines_.heartbeat, kEnd));
  mpi::end_job(sentence);
}

void Watchdog::fail(const std::string& cause) {
  const std::string sentence = join({"rank ", rank_, " ", cause});
  note(sentence);
  // If the ranks are in unlike operations, the watchdogs find that meanwhile, and say it.
  std::this_thread::sleep_for(2 * deadlines_.heartbeat);
  mpi::end_job(sentence);
}

void Watchdog::watch() {
  try {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      const Label mine = label_;
      const bool waits = waits_;
      const auto since = since_;
      lock.unlock();
      tell(mine);
      listen();
      if (const auto fault = find_fault(mine, waits, since)) end_job(*fault);
      lock.lock();
      ended_.wait_for(lock, deadlines_.heartbeat, [&] { return ends_; });
    }
    lock.unlock();
    part();
  } catch (const Error& error) {
    fail(join({"ended: ", error.what()}));
  }
}

/// Sends a beat to each rank that has taken the last one.
void Watchdog::tell(const Label& mine) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Peer& peer = peers_[rank];
    int taken = 0;
    check_mpi(MPI_Test(&peer.sending, &taken, MPI_STATUS_IGNORE), "watchdog");
    if (!taken) continue;
    peer.sent = {mine};
    check_mpi(MPI_Isend(&peer.sent, sizeof(Beat), MPI_BYTE, rank, 0, group_, &peer.sending), "watchdog");
  }
}

void Watchdog::expect(int rank) {
  Peer& peer = peers_[rank];
  check_mpi(MPI_Irecv(&peer.arriving, sizeof(Beat), MPI_BYTE, rank, 0, group_, &peer.receiving), "watchdog");
}

/// Takes a beat that has arrived.
void Watchdog::hear(int rank) {
  Peer& peer = peers_[rank];
  peer.heard = peer.arriving;
  peer.heard_at = Clock::now();
  progress_[rank].reach(peer.heard.label.sequence);
  if (!peer.heard.last) expect(rank);
}

/// Takes all beats that have arrived.
void Watchdog::listen() {
  for (int rank = 0; rank < size_; ++rank)
    for (int arrived = rank != rank_; arrived && !peers_[rank].heard.last;) {
      check_mpi(MPI_Test(&peers_[rank].receiving, &arrived, MPI_STATUS_IGNORE), "watchdog");
      if (arrived) hear(rank);
    }
}

std::optional<detail::Fault> Watchdog::find_fault(const Label& mine, bool waits, Clock::time_point since) {
  const auto now = Clock::now();
  if (now - std::exchange(looked_, now) > deadlines_.dead_after)  // it was this rank that stood still
    for (Peer& peer : peers_) peer.heard_at = now;
  progress_[rank_] = {mine.sequence, since};
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || peers_[rank].heard.last) continue;
    const Label& theirs = peers_[rank].heard.label;
    if (const auto silence = now - peers_[rank].heard_at; silence > deadlines_.dead_after)
      return detail::Fault{rank, join({"is silent for ", detail::seconds(silence),
                                       ": it is stopped or cut off; its last beat: ", describe(theirs),
                                       " (seen by rank ", rank_, ", which ", describe(mine), ")"})};
    if (theirs.sequence == mine.sequence && theirs != mine)
      return rank < rank_ ? find_difference(rank_, mine, rank, theirs) : find_difference(rank, theirs, rank_, mine);
  }
  if (!waits || now - since < deadlines_.operation) return {};
  const auto behind = std::ranges::min_element(progress_, {}, &detail::Progress::sequence);
  detail::Fault fault = {rank_, join({"waits for ", detail::seconds(now - since), ", and no rank is behind it"})};
  if (behind->sequence < mine.sequence)
    fault = detail::find_stall(progress_, static_cast<int>(behind - progress_.begin()), mine.sequence,
                               deadlines_.operation);
  fault.cause += join({" (seen by rank ", rank_, ", which ", describe(mine), ")"});
  return fault;
}

/// Waits for a message to or from `rank`, which has left the last operation.
void Watchdog::await(MPI_Request& request, int rank) {
  constexpr auto kNap = std::chrono::milliseconds(1);
  const auto deadline = Clock::now() + deadlines_.dead_after;
  for (int done = 0;; std::this_thread::sleep_for(kNap)) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "watchdog");
    if (done) return;
    if (Clock::now() > deadline)
      end_job({rank, join({"is silent for ", detail::seconds(deadlines_.dead_after), ", after it has left"})});
  }
}

/// Sends last words, and hears those of all others, so that no message is under way when MPI ends.
void Watchdog::part() {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Peer& peer = peers_[rank];
    await(peer.sending, rank);
    peer.sent.last = true;
    check_mpi(MPI_Isend(&peer.sent, sizeof(Beat), MPI_BYTE, rank, 0, group_, &peer.sending), "watchdog");
  }
  for (int rank = 0; rank < size_; ++rank) {
    while (rank != rank_ && !peers_[rank].heard.last) {
      await(peers_[rank].receiving, rank);
      hear(rank);
    }
    await(peers_[rank].sending, rank);
  }
}

}  // namespace tern::mpi
