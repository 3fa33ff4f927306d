#include "tern/dist/comm/tcp/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern::detail {
namespace {

constexpr auto kWriteLimit =
    std::chrono::milliseconds(100);  // control frames are small: a working link takes them at once

/// A data connection counts as lost if nothing arrives on it for this many times `dead_after`. The limit is long,
/// because TCP sends lost packets again only after longer and longer pauses.
constexpr int kLinkPatience = 3;

/// The most bytes of a cause that ranks send each other. The rest of a longer cause is cut off.
constexpr size_t kMaxCause = 64 << 10;

void raise(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

void lower(int descriptor) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(descriptor, &count, sizeof count);
}

}  // namespace

bool write_control(Connection& connection, Frame frame, std::string_view text, Clock::time_point deadline) {
  check(text.size() <= kMaxControlText, "a control frame of type ", static_cast<int>(frame.type), " has ", text.size(),
        " bytes, expected ", kMaxControlText, " at most");
  const ConstBytes payload = std::as_bytes(std::span(text));
  const Frame::Header header = encode(frame, payload, connection.sent);
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return connection.socket.write_all(bytes, deadline);
}

bool take_control(std::vector<std::byte>& inbox, FrameSeal& seal, Frame& frame, std::string& text) {
  if (inbox.size() < Frame::kBytes) return false;
  Frame::Header header;
  std::copy_n(inbox.begin(), Frame::kBytes, header.begin());
  frame = decode(header);
  check(frame.type != FrameType::data && frame.length <= kMaxControlText, "sent a control frame of type ",
        static_cast<int>(frame.type), " and ", frame.length, " bytes");
  const size_t whole = Frame::kBytes + frame.length;
  if (inbox.size() < whole) return false;
  const ConstBytes payload = ConstBytes(inbox).subspan(Frame::kBytes, frame.length);
  seal.begin(header);
  seal.add(payload);
  check(seal.fits(header), "sent a control frame that was changed on the way");
  text.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(whole));
  return true;
}

Monitor::Monitor(int rank, int size, uint32_t epoch, const Deadlines& deadlines, Ledger& ledger,
                 const LinkCounts& own_links)
    : rank_(rank),
      epoch_(epoch),
      deadlines_(deadlines),
      progress_(static_cast<size_t>(size)),
      ledger_(ledger),
      own_links_(own_links),
      watch_(size),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      failed_(::eventfd(0, EFD_CLOEXEC)) {
  check(wake_ >= 0 && failed_ >= 0, "no event descriptors left");
  for (int each = 0; each < size; ++each) names_.push_back(join({"rank ", each}));
  thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  raise(wake_);
  thread_.join();
  for (Link& link : links_) try {
      write(link, FrameType::goodbye, "");
    } catch (const std::exception&) {  // the peer finds a closed connection instead
    }
  ::close(wake_);
  ::close(failed_);
}

void Monitor::watch(int peer, Connection connection) {
  const Lock lock(mutex_);
  connection.socket.count_in(ledger_);
  links_.push_back({.peer = peer, .connection = std::move(connection)});
  raise(wake_);
}

void Monitor::set_name(int rank, std::string name) {
  const Lock lock(mutex_);
  names_[static_cast<size_t>(rank)] = std::move(name);
}

void Monitor::set_job(std::string name) {
  const Lock lock(mutex_);
  job_ = std::move(name);
}

JobState Monitor::state() {
  const Lock lock(mutex_);
  JobState state = {.job = job_, .failure = failure_, .failed = failed_at_};
  if (rank_ == 0)
    state.clock = ClockOffset{};
  else if (!links_.empty())
    state.clock = links_.front().clock.offset(Clock::now());
  return state;
}

void Monitor::send_members(std::string_view list) {
  const Lock lock(mutex_);
  for (Link& link : links_) write(link, FrameType::members, list);
}

std::string Monitor::receive_members(Clock::time_point deadline) {
  {
    Lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return members_ || !failure_.empty() || links_.front().left; });
    if (failure_.empty() && members_) return *members_;
  }
  fail(0, "did not send the list of members");
}

void Monitor::run() {
  Lock lock(mutex_);
  std::vector<pollfd> entries;
  auto next_beat = Clock::now();
  while (!ending_) {
    entries.assign(1, {wake_, POLLIN, 0});
    for (const Link& link : links_)
      entries.push_back({link.left ? -1 : link.connection.socket.descriptor(), POLLIN, 0});
    lock.unlock();
    ::poll(entries.data(), entries.size(), poll_timeout(next_beat));
    lock.lock();
    if (entries[0].revents != 0) lower(wake_);
    for (size_t i = 0; i + 1 < entries.size(); ++i)  // there may be more links by now
      if (entries[i + 1].revents != 0) read(links_[i]);
    if (Clock::now() < next_beat) continue;
    next_beat = Clock::now() + deadlines_.heartbeat;
    beat();
  }
}

void Monitor::beat() {
  const LinkReport report = own_links_.report();
  watch_.note(rank_, report);
  const std::string text = rank_ == 0 ? "" : format(report);
  for (Link& link : links_) {
    if (!link.left) write(link, FrameType::heartbeat, link.clock.beat(Clock::now()) + text);
    look_after(link);
  }
  if (rank_ != 0) return;
  if (const auto fault = watch_.find_lost(kLinkPatience * deadlines_.dead_after))
    settle(fault->rank, fault->cause, 0, current_);
}

/// Handles a silent link. A rank that left has closed its other connections, too, unless it is broken. Its last bytes
/// may still be on the way.
void Monitor::look_after(Link& link) {
  if (Clock::now() - link.heard <= deadlines_.dead_after) return;
  if (!link.left) return lose(link, "sent nothing for " + seconds(deadlines_.dead_after));
  if (const auto rank = watch_.find_waiting(link.peer, kLinkPatience * deadlines_.dead_after))
    settle(link.peer, join({"has left, and keeps rank ", *rank, " waiting"}), rank_, current_);
}

void Monitor::read(Link& link) {
  std::byte buffer[4096];
  const iovec part = {buffer, sizeof buffer};
  do {
    const Moved moved = link.connection.socket.read({&part, 1});
    if (!moved.ended.empty()) return lose(link, moved.ended);
    link.heard = Clock::now();
    link.inbox.insert(link.inbox.end(), buffer, buffer + moved.bytes);
    try {
      Frame frame;
      std::string text;
      while (!link.left && take_control(link.inbox, link.connection.received, frame, text)) handle(link, frame, text);
    } catch (const Error& error) {
      lose(link, error.what());
    }
  } while (!link.left && link.connection.socket.holds_bytes());
}

void Monitor::handle(Link& link, const Frame& frame, const std::string& text) {
  check(frame.source == link.peer && frame.epoch == epoch_, "sent a control frame of rank ", frame.source, ", epoch ",
        frame.epoch);
  switch (frame.type) {
    case FrameType::heartbeat: {
      progress_[link.peer].reach(frame.message.sequence);
      const std::string_view rest = link.clock.hear(text, link.heard);
      if (rank_ == 0) watch_.note(link.peer, parse_link_report(rest, static_cast<int>(names_.size())));
      break;
    }
    case FrameType::goodbye:
      link.left = true;
      changed_.notify_all();
      watch_.note(link.peer, {});
      break;
    case FrameType::members:
      check(rank_ != 0 && !members_, "sent a list of members that nobody expects");
      members_ = text;
      changed_.notify_all();
      break;
    case FrameType::abort: settle(text); break;
    case FrameType::report: {
      progress_[link.peer].reach(frame.message.sequence);
      int peer = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), peer);
      check(error == std::errc() && peer >= 0 && peer < static_cast<int>(names_.size()), "sent a report on no rank");
      const std::string_view cause(end, text.data() + text.size());
      settle(peer, std::string(cause.substr(cause.starts_with(' '))), link.peer, frame.message);
      break;
    }
    default: tern::fail({"sent a control frame of type ", static_cast<int>(frame.type)});
  }
}

void Monitor::lose(Link& link, const std::string& cause) {
  std::string gone;
  link.connection.socket.flush(gone);  // the alert, if TLS refuses what came: this connection takes no cause after it
  settle(link.peer, cause, rank_, current_);  // the peer itself gets the cause, too, if it can still receive
  link.left = true;
}

void Monitor::settle(int peer, const std::string& cause, int witness, const Message& during) {
  Fault fault = {peer, cause};
  if (cause.empty()) fault = find_stall(progress_, peer, during.sequence, deadlines_.operation);
  // If rank 0 is lost, each rank settles the cause alone. The text names no witness, so that all ranks give the same
  // text.
  const std::string sight =
      fault.rank == 0 && rank_ != 0 ? "" : join({" (seen by rank ", witness, " in ", during, ")"});
  settle(join({names_[fault.rank], " ", fault.cause.substr(0, kMaxCause), sight}));
}

void Monitor::settle(const std::string& failure) {
  if (!failure_.empty()) return;
  failure_ = printable(failure);  // it may hold text from a peer
  failed_at_ = Clock::now();
  raise(failed_);
  changed_.notify_all();
  if (rank_ != 0) return;
  for (Link& link : links_)
    if (!link.left) write(link, FrameType::abort, failure_);
}

void Monitor::write(Link& link, FrameType type, std::string_view text) {
  const Frame frame = {.type = type, .epoch = epoch_, .source = static_cast<uint16_t>(rank_), .message = current_};
  if (write_control(link.connection, frame, text, Clock::now() + kWriteLimit)) return;
  ::shutdown(link.connection.socket.descriptor(), SHUT_RDWR);  // no frame may follow a part of one
}

void Monitor::throw_if_failed() {
  const Lock lock(mutex_);
  if (!failure_.empty()) throw PeerError(failure_);
}

void Monitor::throw_if_deserted() {
  const Lock lock(mutex_);
  for (const Link& link : links_)
    if (link.left && Clock::now() - link.heard > deadlines_.dead_after) settle(link.peer, "has left", rank_, current_);
  if (!failure_.empty()) throw PeerError(failure_);
}

void Monitor::reach(const Message& message) {
  const Lock lock(mutex_);
  current_ = message;
  progress_[rank_].reach(message.sequence);
}

void Monitor::report(int peer, const std::string& cause) {
  Lock lock(mutex_);
  if (failure_.empty() && rank_ == 0) settle(peer, cause, rank_, current_);
  if (failure_.empty()) {
    // Rank 0's verdict is the answer. If rank 0 is gone, its silence becomes the cause at the time limit.
    write(links_.front(), FrameType::report,
          cause.empty() ? std::to_string(peer) : join({peer, " ", cause.substr(0, kMaxCause)}));
    const auto limit = deadlines_.dead_after + 2 * deadlines_.heartbeat;
    changed_.wait_for(lock, limit, [&] { return !failure_.empty() || links_.front().left; });
    settle(peer, cause, rank_, current_);
  }
  throw PeerError(failure_);
}

void Monitor::fail(int peer, const std::string& cause) { report(peer, cause); }
void Monitor::fail_stalled(int peer) { report(peer, ""); }

void Monitor::fail_all(const std::string& sentence) {
  const Lock lock(mutex_);
  settle(sentence);
  throw PeerError(failure_);
}

}  // namespace tern::detail
