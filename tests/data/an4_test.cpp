#include "tern/data/an4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tern/core/error.h"
#include "tests/data/an4_corpus.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

class SmallCorpus : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [path, bytes] : an4_corpus()) put(path, bytes);
  }
  void put(const std::string& path, const Bytes& bytes) {
    fs::create_directories((folder_.path() / path).parent_path());
    fs::remove(folder_.path() / path);
    write(folder_.path() / path, bytes);
  }
  std::string place(const std::string& path) const { return (folder_.path() / path).string(); }
  std::string message(Split split = Split::train, int64_t stride = 3) const {
    return message_of<InputError>([&] { An4(folder_.path(), split, stride); });
  }
  TemporaryFolder folder_;
};

TEST(An4Numbers, AreCepstraAndTheirDifferences) {
  // c0 is t², whose differences are 2·t and 2 inside; all other cepstra are constant.
  const int64_t frames = 12;
  const Tensor given = Tensor::full({frames, An4::kCepstra}, 5);
  for (int64_t t = 0; t < frames; ++t) given.data<float>()[t * An4::kCepstra] = static_cast<float>(t * t);
  const Tensor numbers = an4_numbers(given);
  ASSERT_EQ(numbers.shape(), (Shape{frames, 33}));
  const auto number = [&](int64_t t, int64_t k) { return numbers.data<float>()[t * 33 + k]; };
  for (int64_t t = 4; t < frames - 4; ++t) {
    EXPECT_FLOAT_EQ(number(t, 0), static_cast<float>(t * t));
    EXPECT_FLOAT_EQ(number(t, 11), static_cast<float>(2 * t));
    EXPECT_FLOAT_EQ(number(t, 22), 2);
    EXPECT_EQ(number(t, 10), 5);
    EXPECT_EQ(number(t, 21), 0);
  }
  EXPECT_FLOAT_EQ(number(0, 11), (1 - 0 + 2 * (4 - 0)) / 10.0f);  // copies of frame 0 are before it
}

TEST_F(SmallCorpus, HasStacksOfNormalisedFramesAndPhones) {
  const An4 data(folder_.path(), Split::train, 3);
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.length(0), 7);  // frames 0, 3, ..., 18
  EXPECT_EQ(data.length(1), 3);
  const Sample sample = data.sample(0);
  EXPECT_EQ(sample.at("frames").shape(), (Shape{7, 363}));
  // G OW N OW
  EXPECT_EQ(sample.at("phones").to_vector<int64_t>(), (std::vector<int64_t>{13, 22, 21, 22}));
  EXPECT_EQ(An4::kPhones[13], "G");

  // With a stride of 1, the middle frames of the stacks are all frames of the set.
  const An4 all(folder_.path(), Split::train, 1);
  std::vector<double> sums(33), squares(33);
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor stacks = all.sample(i).at("frames");
    ASSERT_EQ(stacks.size(0), i == 0 ? 20 : 7);
    for (int64_t t = 0; t < stacks.size(0); ++t)
      for (int64_t k = 0; k < 33; ++k) {
        const double value = stacks.data<float>()[t * 363 + 5 * 33 + k];
        sums[static_cast<size_t>(k)] += value / 27;
        squares[static_cast<size_t>(k)] += value * value / 27;
      }
  }
  for (size_t k = 0; k < 33; ++k) {
    EXPECT_NEAR(sums[k], 0, 1e-5) << k;
    EXPECT_NEAR(squares[k], 1, 1e-4) << k;
  }
  // Stack 1 with stride 3 is stack 3 with stride 1; its first frame is beyond the beginning, so it is a copy of frame
  // 0.
  const auto strided = sample.at("frames").to_vector<float>(), every = all.sample(0).at("frames").to_vector<float>();
  for (size_t i = 0; i < 363; ++i) EXPECT_EQ(strided[363 + i], every[3 * 363 + i]);
  for (size_t k = 0; k < 33; ++k) EXPECT_EQ(strided[k], strided[5 * 33 + k]);
}

TEST_F(SmallCorpus, TheTestSetIsNormalisedByTheTrainingSet) {
  const auto before = An4(folder_.path(), Split::test, 3).sample(0).at("frames").to_vector<float>();
  put("an4/feat/an4_clstk/b/two.mfc", mfc(cepstra(30, 9)));
  const auto after = An4(folder_.path(), Split::test, 3).sample(0).at("frames").to_vector<float>();
  EXPECT_NE(before, after);
}

TEST_F(SmallCorpus, IsReadFromAnArchiveToo) {
  const TemporaryFolder other;
  write(other.path() / "an4_mfcc.tar.xz", xz(tar(an4_corpus())));
  for (const fs::path& where : {other.path(), other.path() / "an4_mfcc.tar.xz", folder_.path() / "an4"}) {
    const An4 packed(where, Split::test, 3), plain(folder_.path(), Split::test, 3);
    ASSERT_EQ(packed.size(), 1);
    EXPECT_EQ(packed.sample(0).at("frames").to_vector<float>(), plain.sample(0).at("frames").to_vector<float>());
    EXPECT_EQ(packed.fingerprint(), plain.fingerprint());
  }
}

TEST_F(SmallCorpus, WhatIsMissingOrDamagedIsNamed) {
  EXPECT_EQ(message(), "");
  EXPECT_EQ(message(Split::test, 8),
            "an4: utterance 'an4_clstk/a/one' has 3 stacks of frames for 4 phones, expected 4 "
            "or more: a smaller stride gives more");
  put("an4/etc/an4_train.transcription", text_bytes("GO NO (one)\nNAY (two)\n"));
  EXPECT_EQ(message(), place("an4/etc/an4_train.transcription") +
                           ": line 2: found the word 'NAY', expected a word of etc/an4.dic");
  put("an4/etc/an4_train.transcription", text_bytes("GO NO (one)\n"));
  EXPECT_EQ(message(), place("an4/etc/an4_train.fileids") +
                           ": line 2: found utterance 'two', which has no transcript in " +
                           place("an4/etc/an4_train.transcription") + ", expected one");
  SetUp();
  put("an4/feat/an4_clstk/b/two.mfc", cut(mfc(cepstra(7, 2)), 100));
  EXPECT_EQ(message(), place("an4/feat/an4_clstk/b/two.mfc") +
                           ": byte 0: found a count of 91 numbers, expected 24: the file has 96 bytes behind it");
  fs::remove(place("an4/feat/an4_clstk/b/two.mfc"));
  EXPECT_EQ(message(), place("an4/feat/an4_clstk/b/two.mfc") + ": cannot be read: No such file or directory");
  put("an4/etc/an4_train.fileids", {});
  EXPECT_EQ(message(), place("an4/etc/an4_train.fileids") + ": found no utterance, expected a line for each");
}

TEST(An4Places, WithoutACorpusAreNamed) {
  const TemporaryFolder folder;
  const auto message = [&](const fs::path& place) {
    return message_of<InputError>([&] { An4(place, Split::train, 3); });
  };
  EXPECT_EQ(message(folder.path()), "an4: " + folder.path().string() +
                                        " has no folder etc or an4/etc, and 0 archives (.tar, .tar.gz, .tar.xz or "
                                        ".tgz), expected the corpus or one archive");
  EXPECT_EQ(message("/no/such"), "an4: /no/such does not exist");
  const fs::path archive = folder.path() / "x.tar";
  write(archive, tar({{"an4/README", text_bytes("x")}}));
  EXPECT_EQ(message(archive), archive.string() + ": found no file etc/an4.dic, expected one");
}

TEST(An4Corpus, HasTheRealUtterances) {
  const char* data = std::getenv("TERN_TEST_DATA");
  if (!data) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with cmu_an4/ in it";
  const An4 train(fs::path(data) / "cmu_an4", Split::train, 3), test(fs::path(data) / "cmu_an4", Split::test, 3);
  EXPECT_EQ(train.size(), 948);
  EXPECT_EQ(test.size(), 130);
  // RUBOUT G M E F THREE NINE
  std::string phones;
  for (const int64_t phone : test.sample(0).at("phones").to_vector<int64_t>())
    phones += std::string(An4::kPhones[static_cast<size_t>(phone)]) + " ";
  EXPECT_EQ(phones, "R AH B AW T JH IY EH M IY EH F TH R IY N AY N ");
  int64_t stacks = 0;
  for (int64_t i = 0; i < train.size(); ++i) stacks += train.length(i);
  EXPECT_NEAR(static_cast<double>(stacks), 253'682 / 3.0, 948);
}

}  // namespace
}  // namespace tern
