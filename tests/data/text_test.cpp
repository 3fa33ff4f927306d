#include "tern/data/text.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, IsSplitAtASeparator) {
  EXPECT_EQ(split_at("a,,b", ','), (Parts{"a", "", "b"}));
  EXPECT_EQ(split_at("a\n", '\n'), (Parts{"a", ""}));
  EXPECT_EQ(split_at("", ','), (Parts{""}));
}

TEST(Text, HasWordsBetweenBlanks) {
  EXPECT_EQ(words_in("  two\t six \r"), (Parts{"two", "six"}));
  EXPECT_EQ(words_in(" \t"), Parts{});
}

TEST(Text, IsReadAsAWhole) {
  const std::vector<uint8_t> bytes(200'000, 'x');
  EXPECT_EQ(read_text(*open_source("file", bytes)), std::string(200'000, 'x'));
}

}  // namespace
}  // namespace tern
