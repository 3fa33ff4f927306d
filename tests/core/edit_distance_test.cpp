#include "tern/core/edit_distance.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tern {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsAndSubstitutions) {
  const auto distance = [](std::string_view a, std::string_view b) { return edit_distance(a, b); };
  EXPECT_EQ(distance("kitten", "sitting"), 3u);
  EXPECT_EQ(distance("", "abc"), 3u);
  EXPECT_EQ(distance("abc", ""), 3u);
  EXPECT_EQ(distance("abc", "abc"), 0u);
  EXPECT_EQ(distance("abcd", "bcda"), 2u);
  EXPECT_EQ(edit_distance(std::vector<int>{1, 2, 3}, std::vector<int>{1, 3}), 1u);
}

}  // namespace
}  // namespace tern
