#include "tern/trainer/report/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "tern/core/crc32c.h"
#include "tests/support/disk_calls.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

using namespace trainer;

template <class T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

/// Takes the records out of their TFRecord frames, and checks both checksums of each frame.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> found;
  std::string_view rest = file;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<uint64_t>(rest);
    EXPECT_EQ(take<uint32_t>(rest), masked(length_bytes));
    found.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
    EXPECT_EQ(take<uint32_t>(rest), masked(found.back()));
  }
  return found;
}

TEST(EventFile, IsDurableBeforeACheckpoint) {
  const TemporaryFolder folder;
  EventFile file(folder.path().string());
  const DiskCalls calls;
  file.checkpointing();
  const auto entry = *std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(DiskCalls::found(), std::vector<std::string>{"sync " + entry.path().string()});
}

TEST(EventFile, HoldsFramedScalarEvents) {
  const TemporaryFolder folder;
  const auto events = folder.path() / "made" / "here";
  {
    EventFile file(events.string());
    file.add_scalar("loss", 300, 0.25);
  }
  const auto entry = *std::filesystem::directory_iterator(events);
  EXPECT_TRUE(entry.path().filename().string().starts_with("events.out.tfevents."));
  const auto found = records(read_file(entry.path()));
  ASSERT_EQ(found.size(), 2);

  EXPECT_EQ(found[0][0], 1 << 3 | 1) << "wall_time, fixed64";
  EXPECT_EQ(found[0].substr(9), std::string("\x1a\x0d") + "brain.Event:2");
  // Step 300 as a varint; a summary of 13 bytes; in it a value of 11 bytes: tag "loss", simple_value 0.25f.
  EXPECT_EQ(found[1][0], 1 << 3 | 1);
  const std::string expected =
      std::string("\x10\xac\x02") + "\x2a\x0d" + "\x0a\x0b" + "\x0a\x04loss" + std::string("\x15\x00\x00\x80\x3e", 5);
  EXPECT_EQ(found[1].substr(9), expected);
}

/// The bytes of doubles, as in a message.
std::string bytes_of(std::initializer_list<double> numbers) {
  std::string bytes;
  for (const double number : numbers) {
    bytes.resize(bytes.size() + sizeof number);
    std::memcpy(bytes.data() + bytes.size() - sizeof number, &number, sizeof number);
  }
  return bytes;
}

TEST(EventFile, HoldsHistograms) {
  const TemporaryFolder folder;
  {
    EventFile file(folder.path().string());
    file.add_histogram("w", 7, {.low = 1, .high = 3, .sum = 6, .squares = 14, .finite = 3, .counts = {1, 2}});
  }
  const auto found = records(read_file(*std::filesystem::directory_iterator(folder.path())));
  ASSERT_EQ(found.size(), 2);
  const std::string histogram = "\x09" + bytes_of({1}) + "\x11" + bytes_of({3}) + "\x19" + bytes_of({3}) + "\x21" +
                                bytes_of({6}) + "\x29" + bytes_of({14}) + "\x32\x10" + bytes_of({2, 3}) + "\x3a\x10" +
                                bytes_of({1, 2});
  // Step 7; a summary; in it a value: tag "w", histo.
  ASSERT_EQ(histogram.size(), 81u);
  EXPECT_EQ(found[1].substr(9),
            "\x10\x07" + std::string("\x2a\x58") + "\x0a\x56" + "\x0a\x01w" + "\x2a\x51" + histogram);
}

}  // namespace
}  // namespace tern
