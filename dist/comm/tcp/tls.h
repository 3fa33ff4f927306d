#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/keys.h"

struct ssl_st;  // OpenSSL's SSL

namespace tern::detail {

/// The other end does not speak TLS as this one, has another key, or its bytes were changed on the way. The text says
/// what it did.
class TlsError : public Error {
 public:
  using Error::Error;
};

/// The answer to a caller with another wire: TLS's fatal alert "protocol version" (RFC 8446, section 6). Callers with
/// and without TLS know it.
inline constexpr auto kOtherWire = std::to_array<std::byte>(
    {std::byte{0x15}, std::byte{0x03}, std::byte{0x03}, std::byte{0}, std::byte{2}, std::byte{2}, std::byte{70}});

/// One end of a TLS 1.3 connection (RFC 8446), by OpenSSL. Both ends prove to each other that they have the same key
/// (an external PSK), and agree on fresh keys for this connection (psk_dhe_ke). So somebody who learns the key later
/// cannot read what was sent before. There are no certificates. The cipher is TLS_AES_128_GCM_SHA256.
///
/// It moves no bytes by itself: it asks a Source for the bytes that came, and the owner sends what is in `leaving`. One
/// thread uses it.
class Tls {
 public:
  /// Puts encrypted bytes that the network brought into two buffers, one after the other, and returns their number; 0
  /// if there are none yet. It throws nothing.
  using Source = std::function<size_t(Bytes, Bytes)>;
  /// The key of the identity that a caller names; nullopt if there is none. If it throws, the handshake fails.
  using FindKey = std::function<std::optional<Digest>(std::string_view identity)>;

  /// The end that connects. `identity` travels unencrypted.
  static std::unique_ptr<Tls> caller(std::string identity, const Digest& key);
  static std::unique_ptr<Tls> listener(FindKey find);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Goes on with the handshake. Returns whether it is over; if not, the other end must send more. Throws TlsError.
  bool shake_hands(const Source& source);
  /// The caller's identity. A listener knows it after the handshake.
  const std::string& identity() const { return identity_; }

  /// Encrypts the first bytes, at most `kMostAtOnce`, and returns their number.
  size_t write(ConstBytes bytes);
  /// Decrypts what came, at most `bytes.size()` or `kMostAtOnce` bytes, and returns their number; 0 if more must come.
  /// Throws TlsError.
  size_t read(Bytes bytes, const Source& source);

  /// Whether `read` would return bytes without its source.
  bool holds_bytes() const;
  /// Encrypted bytes that must leave.
  ConstBytes leaving() const { return ConstBytes(out_).subspan(out_begin_); }
  void left(size_t bytes);

  static constexpr size_t kMostAtOnce = 128 << 10;
  /// After so many bytes, this end sends with new keys. AES-GCM allows about 2^38.
  static constexpr uint64_t kBytesPerKey = 256 << 20;

 private:
  Tls() = default;
  struct Hooks;  // what OpenSSL calls
  class Lent;
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  /// Before each call of OpenSSL, which may not be called again after a failure.
  void prepare();
  /// Returns if OpenSSL waits for more bytes; otherwise throws TlsError with its reason.
  void expect_wait(int result);

  std::string identity_;
  std::optional<Digest> key_;            // of a caller
  FindKey find_;                         // of a listener
  const Source* source_ = nullptr;       // during a call that reads
  std::array<std::byte, 5> ahead_ = {};  // the header of the record after that which OpenSSL reads, or its begin
  size_t in_ahead_ = 0;
  std::vector<std::byte> out_;
  size_t out_begin_ = 0;
  bool open_ = false;     // the handshake is over
  std::string failure_;   // what the other end did, once it has failed
  uint64_t written_ = 0;  // bytes with the current keys
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace tern::detail
