#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/data/wav_bytes.h"
#include "tests/support/log.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

/// A folder of words: of each word four clips of a speaker for training, and four of one for testing. A word is a tone.
class TrainOnSpeech : public testing::Test {
 protected:
  TrainOnSpeech() {
    for (const int word : {0, 1})
      for (const char* speaker : {"0c40e715", "00176480"})
        for (int take = 0; take < 4; ++take) {
          std::vector<int16_t> sound(16'000);
          for (size_t i = 0; i < sound.size(); ++i)
            sound[i] = static_cast<int16_t>(9000 * std::sin((0.1 + 0.3 * word + 0.01 * take) * static_cast<double>(i)));
          const auto path = clip(word == 0 ? "no" : "yes", speaker, take);
          std::filesystem::create_directories(path.parent_path());
          write(path, wav(sound));
        }
  }
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  std::filesystem::path clip(const std::string& word, const std::string& speaker, int take) const {
    return std::filesystem::path(place("words")) / word / (speaker + "_nohash_" + std::to_string(take) + ".wav");
  }
  Outcome train(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {built_program("train_mlp"),
                                      "--data",
                                      "speech-commands",
                                      "--data-dir",
                                      place("words"),
                                      "--hidden",
                                      "8",
                                      "--iterations",
                                      "20",
                                      "--batch-size",
                                      "8",
                                      "--threads",
                                      "1",
                                      "--log",
                                      place("log"),
                                      "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  double accuracy() const { return read_log(place("log")).back()["accuracy"]; }

  TemporaryFolder folder_;
};

TEST_F(TrainOnSpeech, HearsWordsInWavFilesWithAndWithoutACache) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--cache", place("cache")}}) {
    const Outcome outcome = train(more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(accuracy(), 1);
  }
  EXPECT_FALSE(std::filesystem::is_empty(place("cache")));
}

TEST_F(TrainOnSpeech, RefusesMoreLikelyWordsThanThereAre) {
  const Outcome outcome = train({"--top", "5"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "train_mlp: --top: found 5, expected fewer than the 2 classes of speech-commands\n");
}

TEST_F(TrainOnSpeech, NamesADamagedClip) {
  write(clip("yes", "00176480", 2), cut(wav({1, 2, 3}), 48));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--cache", place("cache")}}) {
    const Outcome outcome = train(more);
    EXPECT_EQ(outcome.code, 2);
    // Without a cache, the loader reads the clip.
    const std::string where = more.empty() ? "data set 'speech-commands, training', sample 6: " : "";
    EXPECT_EQ(outcome.err, "train_mlp: " + where + clip("yes", "00176480", 2).string() +
                               ": truncated: \"data\" at byte 44 has 6 bytes, the file ends at 48\n");
  }
}

TEST_F(TrainOnSpeech, NamesADamagedArray) {
  const std::string folder = place("array"), array = folder + "/features.npy";
  std::filesystem::create_directories(folder);
  write_file(folder + "/manifest.csv", "index,word,split\n0,up,train\n1,down,test\n");
  write_file(array, std::string("\x93NUMPY\x01\x00\x3f\x00", 10) +
                        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4096), }\n" + std::string(8191, 0));
  const Outcome outcome = run_program({built_program("train_mlp"), "--data", "speech-commands", "--data-dir", folder});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "train_mlp: " + array + ": at most 8191 bytes follow the header, expected 8192 for [2, 4096] of u8\n");
}

}  // namespace
}  // namespace tern
