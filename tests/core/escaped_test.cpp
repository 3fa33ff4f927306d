#include "tern/core/escaped.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Escaped, ShowsEveryByteThatATerminalWouldObey) {
  EXPECT_EQ(escaped("a \"b\" \\ \x1b[2J\n\xff"), R"(a \"b\" \\ \x1b[2J\n\xff)");
  EXPECT_EQ(escaped("größer 10 µs"), "größer 10 µs");
}

TEST(Printable, ChangesNothingTheSecondTime) {
  const std::string once = printable("a \"b\" \\ \x1b[2J\n\xff");
  EXPECT_EQ(once, R"(a "b" \ \x1b[2J\n\xff)");
  EXPECT_EQ(printable(once), once);
  EXPECT_EQ(printable("\\"), "\\");
}

}  // namespace
}  // namespace tern
