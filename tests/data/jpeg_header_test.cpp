#include "tern/data/jpeg_header.h"

#include <gtest/gtest.h>

#include "tests/support/pictures.h"

namespace tern {
namespace {

JpegHeader header_of(const std::string& file) {
  return read_jpeg_header({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

const std::string& jpeg() {
  static const std::string bytes = jpeg_bytes(test_picture(20, 10));
  return bytes;
}

TEST(JpegHeader, HasTheOrientationInEitherByteOrder) {
  EXPECT_EQ(header_of(jpeg()).orientation, 1);
  for (const bool little_endian : {false, true})
    for (int orientation = 1; orientation <= 8; ++orientation)
      EXPECT_EQ(header_of(with_orientation(jpeg(), orientation, little_endian)).orientation, orientation);
}

TEST(JpegHeader, TakesWhatIsNoOrientationForNone) {
  for (const int orientation : {0, 9, 65535})
    EXPECT_EQ(header_of(with_orientation(jpeg(), orientation)).orientation, 1);
  std::string other_order = with_orientation(jpeg(), 6);
  other_order.replace(other_order.find("II"), 2, "XX");
  EXPECT_EQ(header_of(other_order).orientation, 1);
}

TEST(JpegHeader, FindsTheScanBehindFillBytesAndOtherSegments) {
  const size_t scan = jpeg().find("\xff\xda");
  EXPECT_EQ(header_of(jpeg()).scan, scan);
  EXPECT_EQ(header_of("\xff\xd8\xff\xff\xff" + jpeg().substr(3)).scan, scan + 2);
  EXPECT_EQ(header_of("").scan, 0u);
  EXPECT_EQ(header_of("\xff\xd8 nothing more").scan, 0u);
}

TEST(JpegHeader, FindsATableOfTooManyCodesBehindAScanToo) {
  const std::string table = "\xff\xc4" + std::string("\x01\x12\x10", 3) + std::string(16, '\x10');  // 256 codes
  const std::string whole = jpeg() + std::string(300, '\0');
  const size_t scan = whole.find("\xff\xda"), end = whole.find("\xff\xd9", scan);
  EXPECT_EQ(header_of(whole).damage, "");
  for (const size_t place : {scan, end}) {
    const JpegHeader header = header_of(std::string(whole).insert(place, table));
    EXPECT_EQ(header.damage, "Huffman table of more than 255 codes");
    EXPECT_EQ(header.damage_offset, place);
  }
}

TEST(JpegHeader, FindsAScanByATableThatIsNotDefined) {
  const size_t scan = jpeg().find("\xff\xda");
  ASSERT_EQ(jpeg()[scan + 6], '\0') << "the first component's tables, 0 and 0";
  for (const char places : {'\x02', '\x30'}) {
    std::string other = jpeg();
    other[scan + 6] = places;
    EXPECT_EQ(header_of(other).damage, "scan with an undefined Huffman table");
    EXPECT_EQ(header_of(other).damage_offset, scan);
    other[other.find("\xff\xc0") + 1] = '\xc2';  // a progressive file: this scan has DC coefficients only
    EXPECT_EQ(header_of(other).damage.empty(), places == '\x02');
  }
}

TEST(JpegHeader, ReadsWhateverIsLeftOfAFile) {
  const std::string whole = with_orientation(jpeg(), 6, false);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    const std::vector<uint8_t> bytes(part.begin(), part.end());  // exactly this size, for AddressSanitizer
    const int orientation = read_jpeg_header(bytes).orientation;
    EXPECT_TRUE(orientation == 1 || orientation == 6) << size;
  }
  for (size_t at = 2; at < 100; ++at)
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      EXPECT_LE(header_of(changed).orientation, 8);
    }
}

}  // namespace
}  // namespace tern
