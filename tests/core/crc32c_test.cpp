#include "tern/core/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/file_bytes.h"

namespace tern {
namespace {

std::vector<detail::Crc32c> implementations() {
  std::vector<detail::Crc32c> all = {detail::crc32c_table};
  std::ranges::copy(detail::crc32c_instructions(), std::back_inserter(all));
  return all;
}

TEST(Crc32c, KnownAnswers) {
  std::string ascending(32, '\0');
  for (size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<char>(i);
  for (auto crc : implementations()) {
    EXPECT_EQ(crc(bytes_of(""), 0), 0u);
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xE3069283u);
    // The next values are those of RFC 3720, B.4.
    EXPECT_EQ(crc(bytes_of(std::string(32, '\0')), 0), 0x8A9136AAu);
    EXPECT_EQ(crc(bytes_of(std::string(32, '\xff')), 0), 0x62A8AB43u);
    EXPECT_EQ(crc(bytes_of(ascending), 0), 0x46DD794Eu);
  }
}

TEST(Crc32c, ContinuesAtAnyCut) {
  const std::string text = "a tern migrates farther than any other bird";
  const uint32_t whole = crc32c(bytes_of(text));
  for (auto crc : implementations())
    for (size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(crc(bytes_of(text.substr(cut)), crc(bytes_of(text.substr(0, cut)), 0)), whole) << "cut at " << cut;
}

TEST(Crc32c, AgreesOnLongTexts) {
  std::vector<std::byte> bytes(10'007);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i * 31 + i / 256);
  for (const size_t length : {255, 256, 257, 511, 512, 3071, 3072, 3073, 6144, 10'007})
    for (auto crc : implementations())
      EXPECT_EQ(crc(std::span(bytes).first(length), 7), detail::crc32c_table(std::span(bytes).first(length), 7))
          << length;
}

}  // namespace
}  // namespace tern
