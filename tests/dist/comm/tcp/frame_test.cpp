#include "tern/dist/comm/tcp/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/tcp/monitor.h"

namespace tern::detail {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

const Message kMessage = {7, Operation::all_reduce_sum, DType::f32, 1000};
const Frame kFrame = {.type = FrameType::report, .epoch = 3, .source = 2, .message = kMessage};

enum class Tagged { checksum, mac };

FrameSeal seal(Tagged tagged) {
  Digest key = {};
  key[3] = std::byte{7};
  return tagged == Tagged::mac ? FrameSeal::mac(key) : FrameSeal::checksum();
}

/// The first frame of a connection.
std::vector<std::byte> whole_frame(const Frame& frame, std::string_view text, Tagged tagged = Tagged::checksum) {
  const auto payload = bytes_of(text);
  FrameSeal sent = seal(tagged);
  const auto header = encode(frame, payload, sent);
  std::vector<std::byte> bytes(header.size() + payload.size());
  std::ranges::copy(payload, std::ranges::copy(header, bytes.begin()).out);
  return bytes;
}

/// Takes the first frame of a connection.
bool take(std::vector<std::byte>& inbox, Frame& frame, std::string& text, Tagged tagged = Tagged::checksum) {
  FrameSeal received = seal(tagged);
  return take_control(inbox, received, frame, text);
}

Frame::Header header_of(const Frame& frame, std::string_view text) {
  FrameSeal sent = seal(Tagged::checksum);
  return encode(frame, bytes_of(text), sent);
}

TEST(Frame, ComesBackAsItWas) {
  const Clock::time_point due(std::chrono::nanoseconds(123456789));
  Frame frame = kFrame;
  frame.due = due;
  const Frame back = decode(header_of(frame, "four"));
  EXPECT_EQ(back.type, FrameType::report);
  EXPECT_EQ(back.epoch, 3u);
  EXPECT_EQ(back.source, 2);
  EXPECT_TRUE(agree(back.message, kMessage));
  EXPECT_EQ(back.length, 4u);
  EXPECT_EQ(back.due, due);
}

TEST(Frame, IsLittleEndianInAFixedLayout) {
  const auto header = header_of(kFrame, "four");
  const auto at = [&](size_t i) { return std::to_integer<int>(header[i]); };
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(header.data()), 4), "TERN");
  EXPECT_EQ(at(4), kProtocolVersion);
  EXPECT_EQ(at(6), 3);   // type
  EXPECT_EQ(at(7), 2);   // operation
  EXPECT_EQ(at(8), 0);   // f32
  EXPECT_EQ(at(10), 2);  // source
  EXPECT_EQ(at(12), 3);  // epoch
  EXPECT_EQ(at(16), 7);  // sequence
  EXPECT_EQ(at(24), 1000 % 256);
  EXPECT_EQ(at(25), 1000 / 256);
  EXPECT_EQ(at(32), 4);  // length
}

TEST(Frame, EveryFlippedBitIsFound) {
  for (const Tagged tagged : {Tagged::checksum, Tagged::mac}) {
    const auto good = whole_frame(kFrame, "rank 1 left", tagged);
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      auto bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      Frame frame;
      std::string text;
      bool taken = false;
      try {
        taken = take(bad, frame, text, tagged);  // false: the length grew, so the decoder waits for more bytes
      } catch (const Error&) {
      }
      EXPECT_FALSE(taken) << "bit " << bit;
    }
  }
}

// A checksum needs no key: who changes a frame can compute it again.
TEST(Frame, OnlyItsKeyMakesItsMac) {
  auto forged = whole_frame(kFrame, "rank 1 left", Tagged::checksum);
  Frame frame;
  std::string text;
  EXPECT_TRUE(take(forged, frame, text, Tagged::checksum));
  forged = whole_frame(kFrame, "rank 1 left", Tagged::checksum);
  EXPECT_THROW(take(forged, frame, text, Tagged::mac), Error);
}

TEST(Frame, WithAMacOnlyTheNextOnePasses) {
  const auto frames = [](FrameSeal& sent, int count) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < count; ++i) {
      const auto payload = bytes_of("frame " + std::to_string(i));
      const auto header = encode(kFrame, payload, sent);
      bytes.insert(bytes.end(), header.begin(), header.end());
      bytes.insert(bytes.end(), payload.begin(), payload.end());
    }
    return bytes;
  };
  FrameSeal sent = seal(Tagged::mac);
  const auto both = frames(sent, 2);
  const auto half = static_cast<std::ptrdiff_t>(both.size() / 2);
  Frame frame;
  std::string text;
  {
    FrameSeal received = seal(Tagged::mac);
    auto inbox = both;
    EXPECT_TRUE(take_control(inbox, received, frame, text));
    EXPECT_TRUE(take_control(inbox, received, frame, text));
    EXPECT_EQ(text, "frame 1");
  }
  {
    FrameSeal received = seal(Tagged::mac);
    std::vector<std::byte> again(both.begin(), both.begin() + half);
    again.insert(again.end(), both.begin(), both.begin() + half);
    EXPECT_TRUE(take_control(again, received, frame, text));
    EXPECT_THROW(take_control(again, received, frame, text), Error) << "a repeated frame";
  }
  {
    FrameSeal received = seal(Tagged::mac);
    std::vector<std::byte> second(both.begin() + half, both.end());
    EXPECT_THROW(take_control(second, received, frame, text), Error) << "a frame was left out";
  }
}

TEST(Frame, AnyCutWaitsForMore) {
  const auto good = whole_frame(kFrame, "rank 1 left");
  for (size_t length = 0; length <= good.size(); ++length) {
    std::vector<std::byte> part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    Frame frame;
    std::string text;
    EXPECT_EQ(take(part, frame, text), length == good.size());
  }
}

TEST(Frame, HostileBytesNeverPass) {
  const RandomStream random({.seed = 1});
  for (uint32_t round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(Frame::kBytes + round % 64);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.word(round * 128 + i));
    // The correct beginning gets longer each round, so that the test reaches every check.
    const auto right = whole_frame(kFrame, "");
    std::copy_n(right.begin(), round % 56, bytes.begin());
    Frame frame;
    std::string text;
    bool taken = false;
    try {
      taken = take(bytes, frame, text);
    } catch (const Error&) {
    }
    EXPECT_FALSE(taken) << "round " << round;
  }
}

TEST(Frame, CarriesLongTextsWholeOrNotAtAll) {
  const Listener listener{Address{}};
  std::string why, text;
  Connection from = {connect(listener.address(), Clock::now() + std::chrono::seconds(5), why), seal(Tagged::checksum),
                     seal(Tagged::checksum)};
  const auto soon = Clock::now() + std::chrono::seconds(5);
  const std::string list(20000, 'x'), too_long(kMaxControlText + 1, 'x');
  EXPECT_TRUE(write_control(from, kFrame, list, soon));
  EXPECT_THROW(write_control(from, kFrame, too_long, soon), Error);
  auto inbox = whole_frame(kFrame, list);
  Frame frame;
  EXPECT_TRUE(take(inbox, frame, text));
  EXPECT_EQ(text, list);
  inbox = whole_frame(kFrame, too_long);
  EXPECT_THROW(take(inbox, frame, text), Error);
}

TEST(Frame, ALengthIsCheckedBeforeItIsBelieved) {
  auto bytes = whole_frame(kFrame, "");
  const uint64_t huge = uint64_t{1} << 60;
  std::memcpy(bytes.data() + 32, &huge, sizeof huge);
  Frame frame;
  std::string text;
  EXPECT_THROW(take(bytes, frame, text), Error);
}

}  // namespace
}  // namespace tern::detail
