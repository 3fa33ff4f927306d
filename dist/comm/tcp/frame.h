#pragma once

#include <array>
#include <memory>
#include <string>

#include "tern/dist/comm/tcp/keys.h"
#include "tern/dist/comm/transport.h"

struct evp_cipher_ctx_st;  // OpenSSL's EVP_CIPHER_CTX

namespace tern::detail {

inline constexpr uint16_t kProtocolVersion = 5;

/// The purpose of a frame. The values are numbers on the wire: append new ones and never reorder.
enum class FrameType : uint8_t { data = 1, heartbeat, report, abort, goodbye, members, last = members };

/// The fixed part of a frame. A payload of `length` bytes follows it on the wire.
struct Frame {
  static constexpr size_t kBytes = 64;
  using Header = std::array<std::byte, kBytes>;

  FrameType type = FrameType::data;
  uint32_t epoch = 0;   ///< restarts of the job
  uint16_t source = 0;  ///< rank that sends
  Message message = {};
  uint64_t length = 0;
  Clock::time_point due = {};  ///< delivered not before this time
};

/// Checks everything except the tag and the length. Throws Error with the value found and the value expected.
Frame decode(const Frame::Header& header);

/// Computes the tags of frames that travel in one direction of a connection, in their order. Each end has one, and both
/// compute the same tags. A tag covers the header, with zeros as tag, and the payload.
class FrameSeal {
 public:
  /// Zeros, because TLS protects the bytes.
  static FrameSeal of_tls() { return {}; }
  /// CRC-32C, and 12 zeros.
  static FrameSeal checksum();
  /// AES-128-GMAC (NIST SP 800-38D) with the frame's number as nonce. So it also finds a frame that is repeated, left
  /// out, or not in its place. The key is the first half of `key`, and serves one direction of one connection.
  static FrameSeal mac(const Digest& key);

  /// Begins the next frame.
  void begin(const Frame::Header& header);
  void add(ConstBytes payload);
  /// Ends the frame, and writes its tag into `header`.
  void put(Frame::Header& header);
  /// Ends the frame, and returns whether `header` has its tag.
  bool fits(const Frame::Header& header);

 private:
  using Tag = std::array<std::byte, 16>;
  enum class Kind : uint8_t { none, checksum, mac };
  struct Free {
    void operator()(evp_cipher_ctx_st* cipher) const;
  };

  Tag end();

  Kind kind_ = Kind::none;
  uint32_t crc_ = 0;
  uint64_t number_ = 0;  // of the next frame
  std::unique_ptr<evp_cipher_ctx_st, Free> cipher_;
};

/// The header of a frame with this payload, little-endian: magic u32, version u16, type u8, operation u8, dtype u8, 0
/// u8, source u16, epoch u32, sequence u32, 0 u32, count u64, length u64, due u64 (ns of the steady clock), tag of 16
/// bytes. It is the next frame of `seal`.
Frame::Header encode(const Frame& frame, ConstBytes payload, FrameSeal& seal);

}  // namespace tern::detail
