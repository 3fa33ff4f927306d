#include "tern/data/wav.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/data/wav_bytes.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

TEST(Wav, ReadsSamplesAndSkipsOtherChunks) {
  const std::vector<int16_t> samples = {0, 1, -1, 32767, -32768};
  EXPECT_EQ(parse_wav(wav(samples), "clip", 16'000), samples);
  Bytes file = wav(samples);
  const Bytes odd = {'L', 'I', 'S', 'T', 3, 0, 0, 0, 'a', 'b', 'c', 0};
  file.insert(file.begin() + 36, odd.begin(), odd.end());
  EXPECT_EQ(parse_wav(file, "clip", 16'000), samples);
  EXPECT_EQ(parse_wav(wav({}), "clip", 16'000), std::vector<int16_t>{});
}

TEST(Wav, SaysWhatIsWrongAndAtWhichByte) {
  const Bytes good = wav({1, 2, 3});
  const auto message = [](const Bytes& file) {
    return message_of<InputError>([&] { parse_wav(file, "clip", 16'000); });
  };
  const auto with_byte = [&](size_t at, uint8_t value) {
    Bytes file = good;
    file[at] = value;
    return file;
  };
  EXPECT_EQ(message(good), "");
  EXPECT_EQ(message({}), R"(clip: byte 0: found "", expected "RIFF")");
  EXPECT_EQ(message({'O', 'g', 'g', 'S', 0}), R"(clip: byte 0: found "OggS", expected "RIFF")");
  EXPECT_EQ(message(with_byte(8, 'A')), R"(clip: byte 8: found "AAVE", expected "WAVE")");
  EXPECT_EQ(message(with_byte(20, 6)), "clip: byte 20: format: found 6, expected 1 (PCM)");
  EXPECT_EQ(message(with_byte(22, 2)), "clip: byte 22: channels: found 2, expected 1");
  EXPECT_EQ(message(wav({1}, 44'100)), "clip: byte 24: samples per second: found 44100, expected 16000");
  EXPECT_EQ(message(with_byte(34, 8)), "clip: byte 34: bits in a sample: found 8, expected 16");
  EXPECT_EQ(message(with_byte(40, 7)), R"(clip: truncated: "data" at byte 44 has 7 bytes, the file ends at 50)");
  EXPECT_EQ(message(with_byte(40, 5)), R"(clip: "data" at byte 36 has 5 bytes, expected a multiple of 2)");
  EXPECT_EQ(message(cut(good, 36)), R"(clip: found no chunk "data" in 36 bytes, expected one)");
  EXPECT_EQ(message(cut(good, 12)), R"(clip: found no chunk "fmt " in 12 bytes, expected one)");
  EXPECT_EQ(message(cut(good, 40)),
            "clip: truncated: the header of a chunk at byte 36 has 8 bytes, the file ends at 40");
  EXPECT_EQ(message(with_byte(12, 'g')), R"(clip: "data" at byte 36 comes before "fmt ", expected it after)");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(message(cut(good, size)), "") << size << " bytes";
}

}  // namespace
}  // namespace tern
