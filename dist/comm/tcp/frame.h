#pragma once

#include <array>
#include <string>

#include "tern/dist/comm/transport.h"

namespace tern::detail {

inline constexpr uint16_t kProtocolVersion = 3;

/// What a frame is for; a number on the wire: append, never reorder.
enum class FrameType : uint8_t { data = 1, heartbeat, report, abort, goodbye, members, last = members };

/// The fixed part of a frame; a payload of `length` bytes follows it on the wire.
struct Frame {
  static constexpr size_t kBytes = 48;
  using Header = std::array<std::byte, kBytes>;

  FrameType type = FrameType::data;
  uint32_t epoch = 0;   ///< of the job: counts its restarts
  uint16_t source = 0;  ///< rank that sends
  Message message = {};
  uint64_t length = 0;
  Clock::time_point due = {};  ///< not to be delivered before
};

/// Little-endian: magic u32, version u16, type u8, operation u8, dtype u8, 0 u8, source u16, epoch u32, sequence u32,
/// CRC-32C u32 (of header and payload, itself taken as 0), count u64, length u64, due u64 (ns of the steady clock).
Frame::Header encode(const Frame& frame, ConstBytes payload);

/// Checks everything but the checksum and the length; Error with what was found and expected.
Frame decode(const Frame::Header& header);

/// Follows a frame's checksum over header and payload as they arrive.
class FrameCheck {
 public:
  explicit FrameCheck(const Frame::Header& header);
  void add(ConstBytes payload);
  bool good() const { return crc_ == expected_; }

 private:
  uint32_t crc_;
  uint32_t expected_;
};

}  // namespace tern::detail
