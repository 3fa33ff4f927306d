#include "tern/dist/tcp/channel.h"

#include <algorithm>
#include <array>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

/// What is left of a header and a payload of which the first `done` bytes have moved.
template <class Payload>
std::array<iovec, 2> rest(Frame::Header& header, Payload payload, size_t done) {
  const size_t in_header = std::min(done, header.size()), in_payload = done - in_header;
  return {{{header.data() + in_header, header.size() - in_header},
           {const_cast<std::byte*>(payload.data()) + in_payload, payload.size() - in_payload}}};
}

}  // namespace

Channel::Channel(Socket socket, uint32_t epoch, int self, int peer, Ledger& ledger, LinkCounts& links)
    : socket_(std::move(socket)), epoch_(epoch), self_(self), peer_(peer), ledger_(ledger), links_(links) {
  socket_.count_in(ledger);
}

void Channel::queue(const Message& message, ConstBytes bytes, Clock::time_point due) {
  outgoing_.push_back({message, bytes, due});
}

bool Channel::write_some() {
  bool wrote = false;
  while (sending()) {
    const Outgoing& first = outgoing_.front();
    // The checksum is taken when the first byte leaves: what was just summed is still in the cache.
    if (sent_ == 0)
      out_header_ =
          encode({.epoch = epoch_, .source = static_cast<uint16_t>(self_), .message = first.message, .due = first.due},
                 first.bytes);
    const Moved moved = socket_.write(rest(out_header_, first.bytes, sent_));
    check(moved.ended.empty(), moved.ended);
    if (moved.bytes == 0) break;
    wrote = true;
    sent_ += moved.bytes;
    links_.sent(peer_, moved.bytes);
    if (sent_ < Frame::kBytes + first.bytes.size()) continue;
    if (first.message.account == Account::payload) ledger_.sent_payload(first.bytes.size());
    outgoing_.pop_front();
    sent_ = 0;
  }
  return wrote;
}

void Channel::expect(const Message& message, Bytes bytes) {
  expected_ = message;
  bytes_ = bytes;
  check_.reset();
  received_ = 0;
}

bool Channel::read_some() {
  const Moved moved = socket_.read(rest(in_header_, bytes_, received_));
  check(moved.ended.empty(), moved.ended);
  if (moved.bytes == 0) return false;
  const size_t before = std::max(received_, Frame::kBytes);
  received_ += moved.bytes;
  links_.received(peer_, moved.bytes);
  if (received_ < Frame::kBytes) return true;
  if (!check_) check_header();
  check_->add(bytes_.subspan(before - Frame::kBytes, received_ - before));
  if (!received()) return true;
  check(check_->good(), "sent a frame whose checksum is wrong, in ", frame_.message);
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
  check_.emplace(in_header_);
}

}  // namespace tern::detail
