#pragma once

#include <array>
#include <string>

#include "tern/dist/comm/transport.h"

namespace tern::detail {

inline constexpr uint16_t kProtocolVersion = 3;

/// The purpose of a frame. The values are numbers on the wire: append new ones and never reorder.
enum class FrameType : uint8_t { data = 1, heartbeat, report, abort, goodbye, members, last = members };

/// The fixed part of a frame. A payload of `length` bytes follows it on the wire.
struct Frame {
  static constexpr size_t kBytes = 48;
  using Header = std::array<std::byte, kBytes>;

  FrameType type = FrameType::data;
  uint32_t epoch = 0;   ///< restarts of the job
  uint16_t source = 0;  ///< rank that sends
  Message message = {};
  uint64_t length = 0;
  Clock::time_point due = {};  ///< delivered not before this time
};

/// Encodes a header, little-endian: magic u32, version u16, type u8, operation u8, dtype u8, 0 u8, source u16, epoch
/// u32, sequence u32, CRC-32C u32, count u64, length u64, due u64 (ns of the steady clock). The CRC covers header and
/// payload, with its own field as 0.
Frame::Header encode(const Frame& frame, ConstBytes payload);

/// Checks everything except the checksum and the length. Throws Error with the value found and the value expected.
Frame decode(const Frame::Header& header);

/// Computes a frame's checksum over header and payload as they arrive.
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
