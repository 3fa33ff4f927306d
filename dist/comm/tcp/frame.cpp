#include "tern/dist/comm/tcp/frame.h"

#include <bit>
#include <cstring>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"

namespace tern::detail {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x4e524554;  // "TERN"

/// The layout of a header on the wire; see `encode`.
struct Wire {
  uint32_t magic;
  uint16_t version;
  uint8_t type, operation, dtype, zero;
  uint16_t source;
  uint32_t epoch, sequence, crc;
  uint64_t count, length, due;
};
static_assert(sizeof(Wire) == Frame::kBytes);

uint32_t checksum(Wire wire) {
  wire.crc = 0;
  return crc32c(std::as_bytes(std::span(&wire, 1)));
}

}  // namespace

Frame::Header encode(const Frame& frame, ConstBytes payload) {
  const auto due = std::chrono::duration_cast<std::chrono::nanoseconds>(frame.due.time_since_epoch()).count();
  const Message& message = frame.message;
  Wire wire = {kMagic,
               kProtocolVersion,
               static_cast<uint8_t>(frame.type),
               static_cast<uint8_t>(message.operation),
               static_cast<uint8_t>(message.dtype),
               0,
               frame.source,
               frame.epoch,
               message.sequence,
               0,
               message.count,
               payload.size(),
               static_cast<uint64_t>(due)};
  wire.crc = crc32c(payload, checksum(wire));
  return std::bit_cast<Frame::Header>(wire);
}

Frame decode(const Frame::Header& header) {
  const auto wire = std::bit_cast<Wire>(header);
  check(wire.magic == kMagic, "no frame of tern's: it begins with ", wire.magic, ", expected ", kMagic);
  check(wire.version == kProtocolVersion, "speaks version ", wire.version, " of the protocol, expected ",
        kProtocolVersion);
  check(wire.type >= 1 && wire.type <= static_cast<uint8_t>(FrameType::last), "frame of unknown type ", wire.type);
  check(wire.operation <= static_cast<uint8_t>(Operation::last), "frame of unknown operation ", wire.operation);
  check(wire.dtype <= static_cast<uint8_t>(DType::u8), "frame of unknown dtype ", wire.dtype);
  check(wire.zero == 0, "frame with ", wire.zero, " in a reserved byte");
  Frame frame;
  frame.type = static_cast<FrameType>(wire.type);
  frame.epoch = wire.epoch;
  frame.source = wire.source;
  frame.message = {wire.sequence, static_cast<Operation>(wire.operation), static_cast<DType>(wire.dtype), wire.count};
  frame.length = wire.length;
  frame.due = Clock::time_point(std::chrono::nanoseconds(wire.due));
  return frame;
}

FrameCheck::FrameCheck(const Frame::Header& header) {
  const auto wire = std::bit_cast<Wire>(header);
  crc_ = checksum(wire);
  expected_ = wire.crc;
}

void FrameCheck::add(ConstBytes payload) { crc_ = crc32c(payload, crc_); }

}  // namespace tern::detail
