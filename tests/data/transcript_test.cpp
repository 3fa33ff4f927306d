#include "tern/data/transcript.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

constexpr std::string_view kPhones[] = {"AH", "B", "IY"};

std::unique_ptr<ByteSource> source(const std::string& text) {
  return open_source("file", std::vector<uint8_t>(text.begin(), text.end()));
}

TEST(Transcripts, HaveWordsAndAnUtterance) {
  const auto found = read_transcripts(*source("<s> A B </s> (an1-x-b)\n\nGO (an2-x-b)\r\n(an3-x-b)"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].words, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(found[0].utterance, "an1-x-b");
  EXPECT_EQ(found[1].words, std::vector<std::string>{"GO"});
  EXPECT_EQ(found[1].line, 3);
  EXPECT_TRUE(found[2].words.empty());
}

TEST(Transcripts, AWrongLineIsNamed) {
  const auto message = [](const std::string& text) {
    return message_of<InputError>([&] { read_transcripts(*source(text)); });
  };
  EXPECT_EQ(message("A (x)\nB\n"), "file: line 2: found 'B' at the end, expected the utterance's name in parentheses");
  EXPECT_EQ(message("A ()\n"), "file: line 1: found '()' at the end, expected the utterance's name in parentheses");
  EXPECT_EQ(message("A (x)\nB (x)\n"), "file: line 2: utterance 'x' has a second transcript, expected one");
}

TEST(Pronunciations, AreTheFirstOfEachWord) {
  const auto found = read_pronunciations(*source("A  AH\nA(2)  IY\nBEE\tB IY\n"), kPhones);
  EXPECT_EQ(found, (Pronunciations{{"A", {0}}, {"BEE", {1, 2}}}));
}

TEST(Pronunciations, AWrongLineIsNamed) {
  const auto message = [](const std::string& text) {
    return message_of<InputError>([&] { read_pronunciations(*source(text), kPhones); });
  };
  EXPECT_EQ(message("A AH\nBEE\n"), "file: line 2: found the word 'BEE' alone, expected its phones behind it");
  EXPECT_EQ(message("BEE B I\x1b\n"), "file: line 1: found 'I\\x1b', expected one of the 3 phones");
  EXPECT_EQ(message("A AH\nA IY\n"),
            "file: line 2: the word 'A' has a second line, expected WORD(2) for another pronunciation");
}

}  // namespace
}  // namespace tern
