#include "tern/dist/tcp/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

constexpr auto kWriteLimit =
    std::chrono::milliseconds(100);  // control frames are small: a sane link takes them at once

/// Of `dead_after`, that nothing arrives on a data connection before it counts as lost: lost packets are sent again
/// only after ever longer pauses.
constexpr int kLinkPatience = 3;

void raise(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

}  // namespace

bool write_control(Socket& socket, Frame frame, std::string_view text, Clock::time_point deadline) {
  const ConstBytes payload = std::as_bytes(std::span(text.substr(0, kMaxControlText)));
  const Frame::Header header = encode(frame, payload);
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return socket.write_all(bytes, deadline);
}

bool take_control(std::vector<std::byte>& inbox, Frame& frame, std::string& text) {
  if (inbox.size() < Frame::kBytes) return false;
  Frame::Header header;
  std::copy_n(inbox.begin(), Frame::kBytes, header.begin());
  frame = decode(header);
  check(frame.type != FrameType::data && frame.length <= kMaxControlText, "sent a control frame of type ",
        static_cast<int>(frame.type), " and ", frame.length, " bytes");
  const size_t whole = Frame::kBytes + frame.length;
  if (inbox.size() < whole) return false;
  const ConstBytes payload = ConstBytes(inbox).subspan(Frame::kBytes, frame.length);
  FrameCheck checksum(header);
  checksum.add(payload);
  check(checksum.good(), "sent a control frame whose checksum is wrong");
  text.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(whole));
  return true;
}

Monitor::Monitor(int rank, uint32_t epoch, std::vector<ControlLink> links, std::vector<std::string> names,
                 const Deadlines& deadlines, Ledger& ledger, const LinkCounts& own_links)
    : rank_(rank),
      epoch_(epoch),
      names_(std::move(names)),
      deadlines_(deadlines),
      links_(std::move(links)),
      progress_(names_.size()),
      own_links_(own_links),
      watch_(static_cast<int>(names_.size())),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      failed_(::eventfd(0, EFD_CLOEXEC)) {
  check(wake_ >= 0 && failed_ >= 0, "no event descriptors left");
  for (ControlLink& link : links_) {
    link.socket.count_in(ledger);
    link.heard = Clock::now();
  }
  thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  raise(wake_);
  thread_.join();
  for (ControlLink& link : links_) write(link, FrameType::goodbye, "");
  ::close(wake_);
  ::close(failed_);
}

void Monitor::run() {
  Lock lock(mutex_);
  std::vector<pollfd> entries;
  auto next_beat = Clock::now();
  while (!ending_) {
    entries.assign(1, {wake_, POLLIN, 0});
    for (const ControlLink& link : links_) entries.push_back({link.left ? -1 : link.socket.descriptor(), POLLIN, 0});
    lock.unlock();
    ::poll(entries.data(), entries.size(), poll_timeout(next_beat));
    lock.lock();
    for (size_t i = 0; i < links_.size(); ++i)
      if (entries[i + 1].revents != 0) read(links_[i]);
    if (Clock::now() < next_beat) continue;
    next_beat = Clock::now() + deadlines_.heartbeat;
    beat();
  }
}

void Monitor::beat() {
  const LinkReport report = own_links_.report();
  const std::string text = rank_ == 0 ? "" : format(report);
  for (ControlLink& link : links_) {
    if (link.left) continue;
    write(link, FrameType::heartbeat, text);
    if (Clock::now() - link.heard > deadlines_.dead_after)
      lose(link, "gave no sign of life for " + seconds(deadlines_.dead_after));
  }
  if (rank_ != 0) return;
  watch_.note(0, report);
  if (const auto fault = watch_.find_lost(kLinkPatience * deadlines_.dead_after))
    settle(fault->rank, fault->cause, 0, current_);
}

void Monitor::read(ControlLink& link) {
  std::byte buffer[4096];
  const iovec part = {buffer, sizeof buffer};
  const Moved moved = link.socket.read({&part, 1});
  if (!moved.ended.empty()) return lose(link, moved.ended);
  link.heard = Clock::now();
  link.inbox.insert(link.inbox.end(), buffer, buffer + moved.bytes);
  try {
    Frame frame;
    std::string text;
    while (!link.left && take_control(link.inbox, frame, text)) handle(link, frame, text);
  } catch (const Error& error) {
    lose(link, error.what());
  }
}

void Monitor::handle(ControlLink& link, const Frame& frame, const std::string& text) {
  check(frame.source == link.peer && frame.epoch == epoch_, "sent a control frame of rank ", frame.source, ", epoch ",
        frame.epoch);
  switch (frame.type) {
    case FrameType::heartbeat:
      progress_[link.peer].reach(frame.message.sequence);
      if (rank_ == 0) watch_.note(link.peer, parse_link_report(text, static_cast<int>(names_.size())));
      break;
    case FrameType::goodbye: link.left = true; break;
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

void Monitor::lose(ControlLink& link, const std::string& cause) {
  settle(link.peer, cause, rank_, current_);  // the peer itself is told too, if it can still hear
  link.left = true;
}

void Monitor::settle(int peer, const std::string& cause, int witness, const Message& during) {
  Fault fault = {peer, cause};
  if (cause.empty()) fault = find_stall(progress_, peer, during.sequence, deadlines_.operation);
  // Where rank 0 is lost nobody settles whose sight counts, so that none is told.
  const std::string sight =
      fault.rank == 0 && rank_ != 0 ? "" : join({" (seen by rank ", witness, " in ", during, ")"});
  settle(join({names_[fault.rank], " ", fault.cause, sight}));
}

void Monitor::settle(const std::string& failure) {
  if (!failure_.empty()) return;
  failure_ = failure;
  raise(failed_);
  settled_.notify_all();
  if (rank_ != 0) return;
  for (ControlLink& link : links_)
    if (!link.left) write(link, FrameType::abort, failure_);
}

void Monitor::write(ControlLink& link, FrameType type, std::string_view text) {
  write_control(link.socket,
                {.type = type, .epoch = epoch_, .source = static_cast<uint16_t>(rank_), .message = current_}, text,
                Clock::now() + kWriteLimit);
}

void Monitor::throw_if_failed() {
  const Lock lock(mutex_);
  if (!failure_.empty()) throw PeerError(failure_);
}

void Monitor::throw_if_deserted() {
  const Lock lock(mutex_);
  for (const ControlLink& link : links_)
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
    // The answer is rank 0's verdict. Where rank 0 itself is gone, its silence becomes the cause by the deadline.
    write(links_.front(), FrameType::report, std::to_string(peer) + (cause.empty() ? "" : " " + cause));
    settled_.wait_for(lock, deadlines_.dead_after + 2 * deadlines_.heartbeat, [&] { return !failure_.empty(); });
    settle(peer, cause, rank_, current_);
  }
  throw PeerError(failure_);
}

void Monitor::fail(int peer, const std::string& cause) { report(peer, cause); }
void Monitor::fail_stalled(int peer) { report(peer, ""); }

}  // namespace tern::detail
