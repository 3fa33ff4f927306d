#include "tern/dist/comm/tcp/frame.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"

namespace tern::detail {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x4e524554;  // "TERN"

/// The layout of a header on the wire; see `encode`.
struct Layout {
  uint32_t magic;
  uint16_t version;
  uint8_t type, operation, dtype, zero;
  uint16_t source;
  uint32_t epoch, sequence, zeros;
  uint64_t count, length, due;
  std::array<std::byte, 16> tag;
};
static_assert(sizeof(Layout) == Frame::kBytes);

constexpr size_t kTagAt = offsetof(Layout, tag);

}  // namespace

Frame decode(const Frame::Header& header) {
  const auto found = std::bit_cast<Layout>(header);
  check(found.magic == kMagic, "no frame of tern's: it begins with ", found.magic, ", expected ", kMagic);
  check(found.version == kProtocolVersion, "speaks version ", found.version, " of the protocol, expected ",
        kProtocolVersion);
  check(found.type >= 1 && found.type <= static_cast<uint8_t>(FrameType::last), "frame of unknown type ", found.type);
  check(found.operation <= static_cast<uint8_t>(Operation::last), "frame of unknown operation ", found.operation);
  check(found.dtype <= static_cast<uint8_t>(DType::u8), "frame of unknown dtype ", found.dtype);
  check(found.zero == 0 && found.zeros == 0, "frame with ", found.zero, " and ", found.zeros, " in reserved bytes");
  Frame frame;
  frame.type = static_cast<FrameType>(found.type);
  frame.epoch = found.epoch;
  frame.source = found.source;
  frame.message = {found.sequence, static_cast<Operation>(found.operation), static_cast<DType>(found.dtype),
                   found.count};
  frame.length = found.length;
  frame.due = Clock::time_point(std::chrono::nanoseconds(found.due));
  return frame;
}

Frame::Header encode(const Frame& frame, ConstBytes payload, FrameSeal& seal) {
  const auto due = std::chrono::duration_cast<std::chrono::nanoseconds>(frame.due.time_since_epoch()).count();
  const Message& message = frame.message;
  auto header = std::bit_cast<Frame::Header>(Layout{kMagic,
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
                                                    static_cast<uint64_t>(due),
                                                    {}});
  seal.begin(header);
  seal.add(payload);
  seal.put(header);
  return header;
}

FrameSeal FrameSeal::checksum() {
  FrameSeal seal;
  seal.kind_ = Kind::checksum;
  return seal;
}

FrameSeal FrameSeal::mac(const Digest& key) {
  FrameSeal seal;
  seal.kind_ = Kind::mac;
  seal.cipher_.reset(::EVP_CIPHER_CTX_new());
  check(seal.cipher_ != nullptr && ::EVP_EncryptInit_ex(seal.cipher_.get(), ::EVP_aes_128_gcm(), nullptr,
                                                        reinterpret_cast<const unsigned char*>(key.data()), nullptr),
        "OpenSSL: AES-128-GCM failed");
  return seal;
}

void FrameSeal::Free::operator()(EVP_CIPHER_CTX* cipher) const { ::EVP_CIPHER_CTX_free(cipher); }

void FrameSeal::begin(const Frame::Header& header) {
  if (kind_ == Kind::none) return;
  crc_ = 0;
  if (kind_ == Kind::mac) {
    unsigned char nonce[12] = {};
    std::memcpy(nonce, &number_, sizeof number_);
    ++number_;
    check(::EVP_EncryptInit_ex(cipher_.get(), nullptr, nullptr, nullptr, nonce), "OpenSSL: AES-128-GCM failed");
  }
  Frame::Header untagged = header;
  std::fill(untagged.begin() + kTagAt, untagged.end(), std::byte{0});
  add(untagged);
}

void FrameSeal::add(ConstBytes bytes) {
  if (kind_ == Kind::checksum) crc_ = crc32c(bytes, crc_);
  if (kind_ != Kind::mac) return;
  constexpr size_t kMost = size_t{1} << 30;  // OpenSSL counts in int
  for (size_t at = 0; at < bytes.size(); at += kMost) {
    const ConstBytes part = bytes.subspan(at, std::min(kMost, bytes.size() - at));
    int length = 0;
    check(::EVP_EncryptUpdate(cipher_.get(), nullptr, &length, reinterpret_cast<const unsigned char*>(part.data()),
                              static_cast<int>(part.size())),
          "OpenSSL: AES-128-GMAC failed");
  }
}

FrameSeal::Tag FrameSeal::end() {
  Tag tag = {};
  if (kind_ == Kind::checksum) std::memcpy(tag.data(), &crc_, sizeof crc_);
  if (kind_ == Kind::mac) {
    unsigned char nothing[16];
    int length = 0;
    check(::EVP_EncryptFinal_ex(cipher_.get(), nothing, &length) &&
              ::EVP_CIPHER_CTX_ctrl(cipher_.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()), tag.data()) == 1,
          "OpenSSL: AES-128-GMAC failed");
  }
  return tag;
}

void FrameSeal::put(Frame::Header& header) { std::ranges::copy(end(), header.begin() + kTagAt); }

bool FrameSeal::fits(const Frame::Header& header) { return is_same(end(), ConstBytes(header).subspan(kTagAt)); }

}  // namespace tern::detail
