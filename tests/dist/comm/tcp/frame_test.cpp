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

std::vector<std::byte> whole_frame(const Frame& frame, std::string_view text) {
  const auto payload = bytes_of(text);
  const auto header = encode(frame, payload);
  std::vector<std::byte> bytes(header.size() + payload.size());
  std::ranges::copy(payload, std::ranges::copy(header, bytes.begin()).out);
  return bytes;
}

TEST(Frame, ComesBackAsItWas) {
  const Clock::time_point due(std::chrono::nanoseconds(123456789));
  Frame frame = kFrame;
  frame.due = due;
  const Frame back = decode(encode(frame, bytes_of("four")));
  EXPECT_EQ(back.type, FrameType::report);
  EXPECT_EQ(back.epoch, 3u);
  EXPECT_EQ(back.source, 2);
  EXPECT_TRUE(agree(back.message, kMessage));
  EXPECT_EQ(back.length, 4u);
  EXPECT_EQ(back.due, due);
}

TEST(Frame, IsLittleEndianInAFixedLayout) {
  const auto header = encode(kFrame, bytes_of("four"));
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
  const auto good = whole_frame(kFrame, "rank 1 left");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Frame frame;
    std::string text;
    bool taken = false;
    try {
      taken = take_control(bad, frame, text);  // false: the length grew, so the decoder waits for more bytes
    } catch (const Error&) {
    }
    EXPECT_FALSE(taken) << "bit " << bit;
  }
}

TEST(Frame, AnyCutWaitsForMore) {
  const auto good = whole_frame(kFrame, "rank 1 left");
  for (size_t length = 0; length <= good.size(); ++length) {
    std::vector<std::byte> part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    Frame frame;
    std::string text;
    EXPECT_EQ(take_control(part, frame, text), length == good.size());
  }
}

TEST(Frame, HostileBytesNeverPass) {
  const RandomStream random({.seed = 1});
  for (uint32_t round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(Frame::kBytes + round % 64);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.word(round * 128 + i));
    // The correct beginning gets longer each round, so that the test reaches every check.
    const auto right = whole_frame(kFrame, "");
    std::copy_n(right.begin(), round % 40, bytes.begin());
    Frame frame;
    std::string text;
    bool taken = false;
    try {
      taken = take_control(bytes, frame, text);
    } catch (const Error&) {
    }
    EXPECT_FALSE(taken) << "round " << round;
  }
}

TEST(Frame, CarriesLongTextsWholeOrNotAtAll) {
  const Listener listener{Address{}};
  std::string why, text;
  Socket from = connect(listener.address(), Clock::now() + std::chrono::seconds(5), why);
  const auto soon = Clock::now() + std::chrono::seconds(5);
  const std::string list(20000, 'x'), too_long(kMaxControlText + 1, 'x');
  EXPECT_TRUE(write_control(from, kFrame, list, soon));
  EXPECT_THROW(write_control(from, kFrame, too_long, soon), Error);
  auto inbox = whole_frame(kFrame, list);
  Frame frame;
  EXPECT_TRUE(take_control(inbox, frame, text));
  EXPECT_EQ(text, list);
  inbox = whole_frame(kFrame, too_long);
  EXPECT_THROW(take_control(inbox, frame, text), Error);
}

TEST(Frame, ALengthIsCheckedBeforeItIsBelieved) {
  auto bytes = whole_frame(kFrame, "");
  const uint64_t huge = uint64_t{1} << 60;
  std::memcpy(bytes.data() + 32, &huge, sizeof huge);
  Frame frame;
  std::string text;
  EXPECT_THROW(take_control(bytes, frame, text), Error);
}

}  // namespace
}  // namespace tern::detail
