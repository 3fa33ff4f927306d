#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tern/dist/socket.h"
#include "tern/dist/tcp/frame.h"
#include "tern/dist/tcp/link_watch.h"

namespace tern::detail {

/// The data connection to one peer: frames in both directions, none of which ever waits. Owned and used by one
/// transport's thread. Its errors are plain Errors that say what the peer did.
class Channel {
 public:
  Channel(Socket socket, uint32_t epoch, int self, int peer, Ledger& ledger, LinkCounts& links);

  int descriptor() const { return socket_.descriptor(); }
  int peer() const { return peer_; }
  bool sending() const { return !outgoing_.empty(); }

  void queue(const Message& message, ConstBytes bytes, Clock::time_point due);
  /// Gives the kernel what it takes; whether it took any.
  bool write_some();
  void drop_queue() { outgoing_.clear(); }

  /// Begins to wait for a frame that must be `message` and fill `bytes`.
  void expect(const Message& message, Bytes bytes);
  /// Takes what the kernel has; whether there was any.
  bool read_some();
  /// Whether the frame is there, whole and unharmed.
  bool received() const { return received_ == Frame::kBytes + bytes_.size(); }
  Clock::time_point due() const { return frame_.due; }

 private:
  struct Outgoing {
    Message message;
    ConstBytes bytes;
    Clock::time_point due;
  };

  void check_header();

  Socket socket_;
  uint32_t epoch_;
  int self_, peer_;
  Ledger& ledger_;
  LinkCounts& links_;

  std::deque<Outgoing> outgoing_;
  Frame::Header out_header_{};  // of the first in the queue
  size_t sent_ = 0;             // bytes of it, header included

  Message expected_;
  Bytes bytes_;
  Frame::Header in_header_{};
  Frame frame_;
  std::optional<FrameCheck> check_;
  size_t received_ = Frame::kBytes;  // bytes of the frame, header included
};

}  // namespace tern::detail
