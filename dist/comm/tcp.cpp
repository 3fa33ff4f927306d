#include "tern/dist/comm/tcp.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/tcp/frame.h"
#include "tern/dist/comm/tcp/handshake.h"
#include "tern/dist/comm/tcp/link_watch.h"
#include "tern/dist/comm/tcp/monitor.h"

namespace tern::detail {

/// The data connection to one peer: frames in both directions. It never blocks. One transport owns it, and that
/// transport's thread uses it. It throws plain Errors that say what the peer did.
class Channel {
 public:
  Channel(Connection connection, uint32_t epoch, int self, int peer, Ledger& ledger, LinkCounts& links);

  int descriptor() const { return connection_.socket.descriptor(); }
  int peer() const { return peer_; }
  bool sending() const { return !outgoing_.empty(); }

  void queue(const Message& message, ConstBytes bytes, Clock::time_point due);
  /// Writes the bytes that the kernel takes. Returns false if nothing changed.
  bool write_some();
  void drop_queue() {
    outgoing_.clear();
    has_out_header_ = false;
    sent_ = 0;
  }

  /// Starts to receive a frame, which must be `message` and fill `bytes`.
  void expect(const Message& message, Bytes bytes);
  /// Reads the bytes that the kernel has. Returns false if it had none.
  bool read_some();
  /// Whether the frame is complete and its checksum is right.
  bool received() const { return received_ == Frame::kBytes + bytes_.size(); }
  Clock::time_point due() const { return frame_.due; }

 private:
  struct Outgoing {
    Message message;
    ConstBytes bytes;
    Clock::time_point due;
  };

  void check_header();

  Connection connection_;
  uint32_t epoch_;
  int self_, peer_;
  Ledger& ledger_;
  LinkCounts& links_;

  std::deque<Outgoing> outgoing_;
  Frame::Header out_header_{};  // of the first message in the queue
  bool has_out_header_ = false;
  size_t sent_ = 0;  // sent bytes of that message, header included

  Message expected_;
  Bytes bytes_;
  Frame::Header in_header_{};
  Frame frame_;
  size_t received_ = Frame::kBytes;  // bytes of the frame, header included
};

namespace {

/// The rest of a header and a payload, after the first `done` bytes of both.
template <class Payload>
std::array<iovec, 2> rest(Frame::Header& header, Payload payload, size_t done) {
  const size_t in_header = std::min(done, header.size()), in_payload = done - in_header;
  return {{{header.data() + in_header, header.size() - in_header},
           {const_cast<std::byte*>(payload.data()) + in_payload, payload.size() - in_payload}}};
}

}  // namespace

Channel::Channel(Connection connection, uint32_t epoch, int self, int peer, Ledger& ledger, LinkCounts& links)
    : connection_(std::move(connection)), epoch_(epoch), self_(self), peer_(peer), ledger_(ledger), links_(links) {
  connection_.socket.count_in(ledger);
}

void Channel::queue(const Message& message, ConstBytes bytes, Clock::time_point due) {
  outgoing_.push_back({message, bytes, due});
}

bool Channel::write_some() {
  bool wrote = false;
  while (sending()) {
    const Outgoing& first = outgoing_.front();
    const size_t whole = Frame::kBytes + first.bytes.size();
    // Computes the tag just before the first byte leaves, because then a fresh sum is still in the cache. Once only:
    // a seal counts its frames.
    if (!has_out_header_)
      out_header_ =
          encode({.epoch = epoch_, .source = static_cast<uint16_t>(self_), .message = first.message, .due = first.due},
                 first.bytes, connection_.sent);
    has_out_header_ = true;
    if (sent_ < whole) {
      const Moved moved = connection_.socket.write(rest(out_header_, first.bytes, sent_));
      check(moved.ended.empty(), moved.ended);
      if (moved.bytes == 0) break;
      wrote = true;
      sent_ += moved.bytes;
      links_.sent(peer_, moved.bytes);
      if (sent_ < whole) continue;
    }
    std::string ended;
    const bool gone = connection_.socket.flush(ended);
    check(ended.empty(), ended);
    if (!gone) break;
    wrote = true;
    if (first.message.account == Account::payload) ledger_.sent_payload(first.bytes.size());
    outgoing_.pop_front();
    has_out_header_ = false;
    sent_ = 0;
  }
  return wrote;
}

void Channel::expect(const Message& message, Bytes bytes) {
  expected_ = message;
  bytes_ = bytes;
  received_ = 0;
}

bool Channel::read_some() {
  const Moved moved = connection_.socket.read(rest(in_header_, bytes_, received_));
  check(moved.ended.empty(), moved.ended);
  if (moved.bytes == 0) return false;
  const size_t had = received_;
  received_ += moved.bytes;
  links_.received(peer_, moved.bytes);
  if (received_ < Frame::kBytes) return true;
  if (had < Frame::kBytes) check_header();
  const size_t in_payload = std::max(had, Frame::kBytes) - Frame::kBytes;
  connection_.received.add(bytes_.subspan(in_payload, received_ - Frame::kBytes - in_payload));
  if (!received()) return true;
  check(connection_.received.fits(in_header_), "sent a frame that was changed on the way, in ", frame_.message);
  if (expected_.account == Account::payload) ledger_.received_payload(bytes_.size());
  return true;
}

void Channel::check_header() {
  frame_ = decode(in_header_);
  check(frame_.type == FrameType::data && frame_.source == peer_, "sent a frame of type ",
        static_cast<int>(frame_.type), " from rank ", frame_.source, ", expected data from rank ", peer_);
  check(frame_.epoch == epoch_, "is in epoch ", frame_.epoch, " of the job, expected ", epoch_);
  check(agree(frame_.message, expected_) && frame_.length == bytes_.size(), "sends ", frame_.length, " bytes in ",
        frame_.message, ", rank ", self_, " expects ", bytes_.size(), " in ", expected_);
  connection_.received.begin(in_header_);
}

}  // namespace tern::detail

namespace tern {
namespace {

using detail::Channel;

/// A wait spins first, because the peer may be quicker than the wake-up of a sleeping thread.
constexpr auto kSpin = std::chrono::microseconds(100);

/// One rank's end of the mesh. The thread that calls moves the data. The monitor has its own thread for heartbeats.
class Tcp final : public Transport {
 public:
  Tcp(const TcpOptions& options, std::optional<detail::Listener> listener);

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) override;
  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override;
  void flush() override;
  void idle_until(Clock::time_point time) override;
  Traffic traffic() const override { return ledger_.traffic(); }
  JobState state() const override { return monitor_.state(); }
  void reach(const Message& message) override { monitor_.reach(message); }
  void throw_if_failed() override { monitor_.throw_if_deserted(); }
  [[noreturn]] void fail(const std::string& cause) override {
    if (cause.empty()) monitor_.fail_stalled(rank());
    monitor_.fail(rank(), cause);
  }

 private:
  Channel& begin(int peer, const Message& message);
  template <class Move>
  auto guarded(Channel& channel, const Move& move);
  void drop_queues();
  void stop_if_failed();
  [[noreturn]] void fail_stalled(int peer);
  bool write_all_channels();
  Channel* unsent();
  void wait(Channel* source, Clock::time_point until);

  TcpOptions options_;
  Ledger ledger_;
  detail::LinkCounts links_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank; null for this rank
  uint32_t sequence_ = 0;
  mutable detail::Monitor monitor_;
};

Tcp::Tcp(const TcpOptions& options, std::optional<detail::Listener> listener)
    : options_(options),
      links_(options.size),
      monitor_(options.rank, options.size, options.epoch, options.deadlines, ledger_, links_) {
  std::vector<detail::Connection> connections = detail::rendezvous(options_, std::move(listener), monitor_);
  for (int peer = 0; peer < size(); ++peer) {
    channels_.emplace_back();
    if (peer == rank()) continue;
    // A shorter limit would be wrong, because a peer that computes does not read. The heartbeat monitor reports dead
    // ranks.
    detail::Connection& connection = connections[peer];
    connection.socket.set_patience(options.deadlines.operation);
    connection.socket.queue_within_cache();
    channels_[peer] = std::make_unique<Channel>(std::move(connection), options.epoch, rank(), peer, ledger_, links_);
  }
}

Channel& Tcp::begin(int peer, const Message& message) {
  check(peer >= 0 && peer < size() && peer != rank(), message, ": rank ", rank(), " with rank ", peer, " of ", size());
  if (message.sequence != sequence_) {
    stop_if_failed();
    monitor_.reach(message);
    sequence_ = message.sequence;
  }
  return *channels_[peer];
}

/// Turns an error of a channel into a failure of the job.
template <class Move>
auto Tcp::guarded(Channel& channel, const Move& move) {
  std::string cause;
  try {
    return move();
  } catch (const Error& error) {
    cause = error.what();
  }
  drop_queues();
  monitor_.fail(channel.peer(), cause);
}

/// Before an error leaves: the caller then frees the tensors that are still to be sent.
void Tcp::drop_queues() {
  for (const auto& channel : channels_)
    if (channel) channel->drop_queue();
}

/// Throws if the job has failed.
void Tcp::stop_if_failed() {
  try {
    monitor_.throw_if_failed();
  } catch (const Error&) {
    drop_queues();
    throw;
  }
}

void Tcp::fail_stalled(int peer) {
  drop_queues();
  monitor_.fail_stalled(peer);
}

void Tcp::send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) {
  Channel& channel = begin(peer, message);
  channel.queue(message, bytes, due);
  guarded(channel, [&] { return channel.write_some(); });
}

Clock::time_point Tcp::receive(int peer, const Message& message, std::span<std::byte> bytes) {
  Channel& channel = begin(peer, message);
  channel.expect(message, bytes);
  auto idle_since = Clock::now();
  links_.wait_for(peer);
  while (!channel.received()) {
    const bool read = guarded(channel, [&] { return channel.read_some(); });
    const bool moved = write_all_channels() || read;
    const auto now = Clock::now();
    if (moved)
      idle_since = now;
    else if (now < idle_since + kSpin)
      std::this_thread::yield();
    else if (now < idle_since + options_.deadlines.operation)
      wait(&channel, idle_since + options_.deadlines.operation);
    else
      fail_stalled(peer);
  }
  links_.wait_for(-1);
  return channel.due();
}

void Tcp::flush() {
  stop_if_failed();  // an operation without elements only comes here
  auto deadline = Clock::now() + options_.deadlines.operation;
  while (Channel* channel = unsent()) {
    links_.wait_to_send(channel->peer());
    if (write_all_channels()) {
      deadline = Clock::now() + options_.deadlines.operation;
    } else {
      if (Clock::now() >= deadline) fail_stalled(channel->peer());
      wait(nullptr, deadline);
    }
  }
  links_.wait_to_send(-1);
}

void Tcp::idle_until(Clock::time_point time) {
  while (Clock::now() < time) {
    write_all_channels();
    wait(nullptr, time);
  }
}

/// Returns whether any bytes left.
bool Tcp::write_all_channels() {
  bool wrote = false;
  for (const auto& channel : channels_)
    if (channel && channel->sending()) wrote |= guarded(*channel, [&] { return channel->write_some(); });
  return wrote;
}

Channel* Tcp::unsent() {
  for (const auto& channel : channels_)
    if (channel && channel->sending()) return channel.get();
  return nullptr;
}

/// Waits until `source` has bytes, a channel takes bytes, the job fails or the time comes.
void Tcp::wait(Channel* source, Clock::time_point until) {
  std::vector<pollfd> entries = {{monitor_.failed_descriptor(), POLLIN, 0}};
  if (source) entries.push_back({source->descriptor(), POLLIN, 0});
  for (const auto& channel : channels_)
    if (channel && channel->sending()) entries.push_back({channel->descriptor(), POLLOUT, 0});
  const timespec left = [&] {
    const auto rest = std::max(Clock::duration::zero(), until - Clock::now());
    const auto whole = std::chrono::floor<std::chrono::seconds>(rest);
    return timespec{whole.count(), std::chrono::nanoseconds(rest - whole).count()};
  }();
  ::ppoll(entries.data(), entries.size(), &left, nullptr);
  if (entries[0].revents != 0) stop_if_failed();
}

}  // namespace

std::unique_ptr<Transport> make_tcp(const TcpOptions& options, std::optional<detail::Listener> listener) {
  check_input(options.size >= 1 && options.size <= kMaxRanks && options.rank >= 0 && options.rank < options.size,
              "rank ", options.rank, " of ", options.size, ", expected 0 to ", kMaxRanks - 1, " of 1 to ", kMaxRanks);
  check_input(!options.token.empty(), "rank ", options.rank,
              ": found no job token. Ranks identify each other by it: give all ranks one in TERN_TOKEN, or in a file "
              "that TERN_TOKEN_FILE names");
  for (const Address& address : {options.master, listener ? listener->address() : options.master})
    check_input(
        options.wire != Wire::plain || detail::is_loopback(address), address,
        ": found an address that other machines can reach, expected one of loopback, because nothing protects a "
        "plain wire");
  return std::make_unique<Tcp>(options, std::move(listener));
}

}  // namespace tern
