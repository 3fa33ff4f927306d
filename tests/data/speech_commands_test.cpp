#include "tern/data/speech_commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include "tern/core/error.h"
#include "tern/data/npy.h"
#include "tern/data/tar.h"
#include "tern/data/wav.h"
#include "tests/data/wav_bytes.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

std::vector<float> image_of(const Dataset& data, int64_t index) {
  return data.sample(index)["image"].to_vector<float>();
}
int64_t label_in(const Dataset& data, int64_t index) { return data.sample(index)["label"].to_vector<int64_t>()[0]; }

/// A folder with WAV files: of each word a clip of a speaker for training, and of one for testing.
class SpeechFiles : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* word : {"yes", "no"})
      for (const char* speaker : {"0c40e715", "00176480"}) add(word, speaker);
    fs::create_directory(folder_.path() / "_background_noise_");
  }
  void add(const std::string& word, const std::string& speaker) {
    fs::create_directories(folder_.path() / word);
    std::vector<int16_t> sound(8000);
    for (size_t i = 0; i < sound.size(); ++i)
      sound[i] = static_cast<int16_t>(i * (word.size() + static_cast<size_t>(speaker[1])) % 7919);
    write(folder_.path() / word / (speaker + "_nohash_0.wav"), wav(sound));
  }

  TemporaryFolder folder_;
};

TEST_F(SpeechFiles, AreSplitBySpeakerAndLabelledByTheOrderOfWords) {
  ASSERT_FALSE(is_test_clip("00176480_nohash_0.wav"));
  ASSERT_TRUE(is_test_clip("0c40e715_nohash_0.wav"));
  for (const Split split : {Split::train, Split::test}) {
    const SpeechCommands data(folder_.path(), split);
    EXPECT_EQ(data.words(), (std::vector<std::string>{"no", "yes"}));
    ASSERT_EQ(data.size(), 2);
    EXPECT_EQ(label_in(data, 0), 0);
    EXPECT_EQ(label_in(data, 1), 1);
    EXPECT_NE(image_of(data, 0), image_of(data, 1));
  }
}

TEST_F(SpeechFiles, AreFoundInAFolder) {
  EXPECT_TRUE(holds_speech_commands(folder_.path()));
  const TemporaryFolder other;
  EXPECT_FALSE(holds_speech_commands(other.path() / "absent"));
  fs::create_directory(other.path() / "music");
  write_file(other.path() / "music" / "song.wav", "");
  EXPECT_FALSE(holds_speech_commands(other.path()));
  EXPECT_FALSE(holds_speech_commands(other.path() / "music" / "song.wav"));
  write_file(other.path() / "manifest.csv", "");
  EXPECT_FALSE(holds_speech_commands(other.path())) << "there is no array beside it";
  write_file(other.path() / "features.npy.gz", "");
  EXPECT_TRUE(holds_speech_commands(other.path()));
}

TEST_F(SpeechFiles, TheCacheGivesTheSameSpectrograms) {
  SpeechCommands data(folder_.path(), Split::train), cached(folder_.path(), Split::train);
  const fs::path cache = folder_.path() / "_cache";
  for (const int made : {1, 0}) {
    int times = 0;
    cached.use_cache(cache, [&](std::optional<size_t>) { ++times; });
    EXPECT_EQ(times > 0, made == 1);
    for (int64_t i = 0; i < data.size(); ++i) EXPECT_EQ(image_of(cached, i), image_of(data, i));
  }
}

TEST_F(SpeechFiles, ADamagedOneIsNamed) {
  const fs::path path = folder_.path() / "no" / "00176480_nohash_0.wav";
  write(path, cut(wav({1, 2, 3}), 48));
  SpeechCommands data(folder_.path(), Split::train);
  const std::string expected = path.string() + R"(: truncated: "data" at byte 44 has 6 bytes, the file ends at 48)";
  EXPECT_EQ(message_of<InputError>([&] { data.sample(0); }), expected);
  EXPECT_EQ(message_of<InputError>([&] { data.use_cache(folder_.path() / "_cache", [](auto) {}); }), expected);
}

TEST_F(SpeechFiles, FoldersWithoutClipsAreRefused) {
  const auto message = [](const fs::path& folder) {
    return message_of<InputError>([&] { SpeechCommands(folder, Split::train); });
  };
  fs::create_directory(folder_.path() / "maybe");
  EXPECT_EQ(message(folder_.path()),
            "speech-commands: " + (folder_.path() / "maybe").string() + " has no .wav file, expected some");
  EXPECT_EQ(
      message(folder_.path() / "yes"),
      "speech-commands: " + (folder_.path() / "yes").string() +
          " has 0 folders of words and no manifest.csv, expected two folders or more with WAV files, or a manifest");
  EXPECT_EQ(message("/no/such"), "speech-commands: /no/such is not a folder");
}

/// An array of NumPy with rows of 4096 values, given as bytes.
Bytes npy_of(const std::string& dtype, size_t rows, std::string_view values) {
  std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", 4096), }\n";
  std::string file("\x93NUMPY\x01\x00", 8);
  file += {static_cast<char>(header.size()), 0};
  file += header;
  file += values;
  return {file.begin(), file.end()};
}
/// Rows of codes; row i has the code i.
Bytes codes(size_t rows) {
  std::string values;
  for (size_t i = 0; i < rows; ++i) values.append(4096, static_cast<char>(i));
  return npy_of("|u1", rows, values);
}
Bytes levels_in(const std::vector<float>& levels) {
  return npy_of("<f4", levels.size() / 4096, {reinterpret_cast<const char*>(levels.data()), 4 * levels.size()});
}

TEST(SpeechFeatures, AreReadFromAnArrayAndAManifest) {
  const TemporaryFolder folder;
  write_file(folder.path() / "manifest.csv", "index,word,file,split\n0,up,a,train\r\n1,down,b,test\n2,down,c,train\n");
  write(folder.path() / "features.npy.xz", xz(codes(3)));
  const SpeechCommands train(folder.path(), Split::train), test(folder.path(), Split::test);
  EXPECT_EQ(train.words(), (std::vector<std::string>{"down", "up"}));
  ASSERT_EQ(train.size(), 2);
  ASSERT_EQ(test.size(), 1);
  EXPECT_EQ(label_in(train, 0), 1);
  EXPECT_EQ(label_in(train, 1), 0);
  EXPECT_EQ(image_of(train, 0), std::vector<float>(4096, -80));
  EXPECT_EQ(image_of(train, 1), std::vector<float>(4096, 2.0f * 80 / 63 - 80));
  EXPECT_EQ(image_of(test, 0), std::vector<float>(4096, 1.0f * 80 / 63 - 80));
}

TEST(SpeechFeatures, WhatDoesNotFitIsRefused) {
  const TemporaryFolder folder;
  const std::string manifest = (folder.path() / "manifest.csv").string(), array = (folder.path() / "x.npy").string();
  const std::string titles = "index,word,split\n", two = titles + "0,up,train\n1,down,test\n";
  write(array, codes(2));
  const auto message = [&](const std::string& text) {
    write_file(manifest, text);
    return message_of<InputError>([&] { SpeechCommands(folder.path(), Split::train); });
  };
  EXPECT_EQ(message(two), "");
  EXPECT_EQ(message(titles), manifest + ": found no clip, expected a line of titles and a line for each clip");
  EXPECT_EQ(message("index,word\n"), manifest + ": line 1: no column 'split', expected index, word and split");
  EXPECT_EQ(message(titles + "0,up\n"), manifest + ": line 2: found 2 columns, expected 3");
  EXPECT_EQ(message(titles + "1,up,train\n"), manifest + ": line 2: found index '1', expected 0");
  EXPECT_EQ(message(titles + "0,,train\n"), manifest + ": line 2: found no word, expected one");
  EXPECT_EQ(message(titles + "0,\"up\",train\n"),
            manifest + R"(: line 2: found word '\"up\"', expected one without quotes)");
  EXPECT_EQ(message(titles + "0,up,\x1b\n"),
            manifest + R"(: line 2: found split '\x1b', expected train, validation or test)");
  EXPECT_EQ(message(titles + "0,up,train\n"),
            array + ": found u8 [2, 4096], expected u8 or f32 [1, 4096], a row for each clip of " + manifest);
  EXPECT_EQ(message(titles + "0,up,test\n1,up,test\n"),
            "speech-commands: " + folder.path().string() + " has no clip for training, expected some");
  Bytes wrong = codes(2);
  wrong.back() = 64;
  write(array, wrong);
  EXPECT_EQ(message(two), array + ": row 1: found 64, expected 0 to 63");
  for (const auto& [level, shown] : {std::pair{std::nanf(""), "nan"}, {500.0f, "500"}, {-81.0f, "-81"}}) {
    std::vector<float> levels(2 * 4096, -40);
    levels.back() = level;
    write(array, levels_in(levels));
    EXPECT_EQ(message(two), array + ": row 1: found " + shown + ", expected -80 to 0 dB");
  }
  write(array, codes(2));
  write(folder.path() / "y.npy", codes(2));
  EXPECT_EQ(message(two), "speech-commands: " + folder.path().string() +
                              " has a manifest and 2 arrays (.npy, .npy.gz or .npy.xz), expected one");
}

// The stored features have steps of 1.27 dB.
TEST(SpeechFeatures, OfTheRealClipsEqualTheStoredOnes) {
  const char* data = std::getenv("TERN_TEST_DATA");
  if (!data) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with speech_commands/ in it";
  const fs::path folder = fs::path(data) / "speech_commands";
  const SpeechCommands train(folder, Split::train), test(folder, Split::test);
  EXPECT_EQ(train.size(), 8782);
  EXPECT_EQ(test.size(), 1661);
  EXPECT_EQ(train.words().size(), 30);

  // Each clip by its word and file, as the manifest lists them.
  const auto source = open_source(folder / "manifest.csv.gz");
  std::string text(1 << 22, '\0');
  text.resize(source->read({reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  std::istringstream lines(text);
  std::map<std::string, std::pair<const SpeechCommands*, int64_t>> stored;
  int64_t trained = 0, tested = 0;
  for (std::string index, word, file, split, rest; std::getline(lines, index, ',');) {
    std::getline(lines, word, ','), std::getline(lines, file, ','), std::getline(lines, split, ',');
    std::getline(lines, rest);
    if (index == "index") continue;
    EXPECT_EQ(is_test_clip(file), split != "train") << file;
    stored["/" + word + "/" + file] = split == "train" ? std::pair(&train, trained++) : std::pair(&test, tested++);
  }

  TarArchive archive(open_source(folder / "wav_sample.tar.xz"));
  const MelSpectrogram spectrogram;
  int compared = 0;
  while (const auto clip = archive.next()) {
    const auto known =
        std::ranges::find_if(stored, [&](const auto& entry) { return clip->name().ends_with(entry.first); });
    if (known == stored.end()) continue;
    Bytes file(1 << 20);
    file.resize(clip->read(file));
    std::vector<float> features(4096);
    spectrogram.compute(parse_wav(file, clip->name(), MelSpectrogram::kRate), features);
    const auto expected = image_of(*known->second.first, known->second.second);
    for (size_t i = 0; i < features.size(); ++i) ASSERT_NEAR(features[i], expected[i], 0.8) << clip->name() << ' ' << i;
    ++compared;
  }
  EXPECT_EQ(compared, 240);
}

}  // namespace
}  // namespace tern
