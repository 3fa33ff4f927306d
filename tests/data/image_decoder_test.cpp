#include "tern/data/image_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tern/core/error.h"
#include "tern/data/tar.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

std::span<const uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

Image decode(const std::string& file, int channels) {
  const DecodedImage image = decode_image(bytes_of(file), "x", channels);
  return upright(image.view(), image.orientation());
}

std::string message(const std::string& file, int channels = 3) {
  return message_of<InputError>([&] { decode(file, channels); });
}

TEST(ImageDecoder, ReadsGreyAndColourAsEither) {
  const Image picture = test_picture(13, 7);
  EXPECT_EQ(decode(png_bytes(picture), 3).values, picture.values);
  const std::string grey = png_bytes(2, 1, 1, {10, 200});
  EXPECT_EQ(decode(grey, 1).values, (std::vector<uint8_t>{10, 200}));
  EXPECT_EQ(decode(grey, 3).values, (std::vector<uint8_t>{10, 10, 10, 200, 200, 200}));
  const std::string primary = png_bytes(3, 1, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255});
  const auto luma = decode(primary, 1).values;
  EXPECT_NEAR(luma[0], 0.299 * 255, 1.5);
  EXPECT_NEAR(luma[1], 0.587 * 255, 1.5);
  EXPECT_NEAR(luma[2], 0.114 * 255, 1.5);
}

TEST(ImageDecoder, ShowsWhitePaperWhereItIsTransparent) {
  EXPECT_EQ(decode(png_bytes(3, 1, 2, {40, 255, 40, 0, 55, 51}), 1).values, (std::vector<uint8_t>{40, 255, 215}));
  EXPECT_EQ(decode(png_bytes(2, 1, 4, {1, 2, 3, 255, 1, 2, 3, 0}), 3).values,
            (std::vector<uint8_t>{1, 2, 3, 255, 255, 255}));
}

TEST(ImageDecoder, KeepsTheUpperHalfOf16Bits) {
  EXPECT_EQ(decode(png16_bytes(2, 2, {0, 0x12ff, 0x8000, 0xffff}), 1).values,
            (std::vector<uint8_t>{0, 0x12, 0x80, 255}));
}

TEST(ImageDecoder, TurnsAPhotographAsItsCameraWasHeld) {
  const Image seen = test_picture(48, 32);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const int inverse = orientation == 6 ? 8 : orientation == 8 ? 6 : orientation;
    const Image stored = upright(seen.view(), inverse);
    const Image decoded = decode(with_orientation(jpeg_bytes(stored, 100), orientation, orientation % 2 == 0), 3);
    ASSERT_EQ(decoded.width, 48);
    ASSERT_EQ(decoded.height, 32);
    for (size_t i = 0; i < seen.values.size(); ++i) ASSERT_NEAR(decoded.values[i], seen.values[i], 12) << orientation;
  }
}

TEST(ImageDecoder, RefusesASizeThatTheFileCannotHoldBeforeThereIsMemoryForIt) {
  const std::string jpeg = jpeg_bytes(test_picture(64, 64));
  EXPECT_EQ(message(with_extent(jpeg, 60000, 60000)), "x: declares 60000x60000 pixels, expected 1 to 134217728");
  EXPECT_EQ(message(with_extent(jpeg, 10000, 10000)),
            join({"x: declares 10000x10000 pixels, its ", jpeg.size(), " bytes hold ", 512 * jpeg.size(), " at most"}));
  const std::string png = png_bytes(test_picture(64, 64));
  EXPECT_EQ(message(with_extent(png, 60000, 60000)), "x: declares 60000x60000 pixels, expected 1 to 134217728");
  EXPECT_EQ(message(with_extent(png, 0, 60000)), "x: declares 0x60000 pixels, expected 1 to 134217728");
  EXPECT_EQ(message(with_extent(png, 11000, 11000)),
            join({"x: declares 11000x11000 pixels, its ", png.size(), " bytes hold ", 8256 * png.size(), " at most"}));
  EXPECT_EQ(message("P6 "), "x: declares 0x0 pixels, expected 1 to 134217728");
  EXPECT_EQ(message("P5 30000 4000 255\n"), "x: declares 30000x4000 pixels, its 18 bytes hold 18 at most");
}

TEST(ImageDecoder, RefusesWhatIsCutOffWhereverThatIs) {
  const Image picture = test_picture(40, 40);
  const std::string jpeg = jpeg_bytes(picture), png = png_bytes(picture);
  for (size_t size = 0; size < jpeg.size(); size += 1 + size / 16)
    EXPECT_TRUE(message(jpeg.substr(0, size)).starts_with("x: ")) << size;
  for (size_t size = 0; size < png.size(); size += 1 + size / 16)
    EXPECT_TRUE(message(png.substr(0, size)).starts_with("x: ")) << size;
  EXPECT_EQ(message(png.substr(0, 100)),
            join({"x: truncated: the chunk at offset 33 declares ", png.size() - 57, " bytes, the file has 55"}));
  EXPECT_EQ(message(png.substr(0, png.size() - 12)),
            join({"x: truncated: no end of the image (IEND) in ", png.size() - 12, " bytes"}));
  const size_t scan = jpeg.find("\xff\xda");
  EXPECT_EQ(message(jpeg.substr(0, jpeg.size() - 2)),
            join({"x: truncated: no end of the image (FF D9) follows the scan at offset ", scan, " in ",
                  jpeg.size() - 2, " bytes"}));
  EXPECT_EQ(message(jpeg + "and more"), "") << "cameras add to their files";
}

/// One row of three pixels.
const std::string kPpm = std::string("P6 # a comment\n3 1\n255\n") + "abcdefghi";
/// Two grey pixels with 8 bits each and a palette of two colours. The row has two bytes of padding.
const std::string kPaletteBmp = std::string("BM\x42\0\0\0\0\0\0\0\x3e\0\0\0", 14) +
                                std::string("\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x8\0", 16) + std::string(24, '\0') +
                                std::string("\7\7\7\0\x9\x9\x9\0", 8) + std::string("\1\0\0\0", 4);
/// A comment, then one pixel.
const std::string kGif = std::string("GIF89a\1\0\1\0\x80\0\0", 13) + std::string("\x5\x6\x7\0\0\0", 6) +
                         std::string("\x21\xfe\2;;\0", 6) + std::string("\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;", 16);

TEST(ImageDecoder, RefusesAFormatWithoutChecksThatLacksItsLastByte) {
  const Image picture = test_picture(8, 3);
  const std::string bmp = bmp_bytes(picture);
  EXPECT_EQ(decode(bmp, 3).values, picture.values);
  EXPECT_EQ(message(bmp.substr(0, bmp.size() - 1)),
            "x: truncated: the pixels at offset 54 take 72 bytes, the file has 71 there");
  EXPECT_EQ(message(bmp.substr(0, 54)), "x: truncated: the pixels at offset 54 take 72 bytes, the file has 0 there");
  EXPECT_EQ(decode(kPaletteBmp, 1).values, (std::vector<uint8_t>{9, 7}));
  EXPECT_EQ(decode(kPaletteBmp.substr(0, 64), 1).values, (std::vector<uint8_t>{9, 7})) << "only padding is gone";
  EXPECT_EQ(message(kPaletteBmp.substr(0, 63)),
            "x: truncated: the pixels at offset 62 take 2 bytes, the file has 1 there");
  EXPECT_EQ(decode(kPpm, 3).values, (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'}));
  EXPECT_EQ(message(kPpm.substr(0, kPpm.size() - 1)),
            "x: truncated: the pixels at offset 23 take 9 bytes, the file has 8 there");
  EXPECT_EQ(message("P5 2 1 255\n\x07"), "x: truncated: the pixels at offset 11 take 2 bytes, the file has 1 there");
  EXPECT_EQ(decode(kGif, 3).values, (std::vector<uint8_t>{5, 6, 7}));
  for (size_t size = 25; size < kGif.size(); ++size)
    EXPECT_EQ(message(kGif.substr(0, size)), join({"x: truncated: no end of the image (3B) in ", size, " bytes"}));
}

TEST(ImageDecoder, ReadsABmpWhoseFirstRowIsAtTheTop) {
  const Image picture = test_picture(8, 3);
  std::string bmp = bmp_bytes(picture);
  const int32_t height = -3;
  std::memcpy(bmp.data() + 22, &height, sizeof height);
  Image flipped = decode(bmp, 3);
  ASSERT_EQ(flipped.height, 3);
  std::swap_ranges(flipped.values.begin(), flipped.values.begin() + 24, flipped.values.begin() + 48);
  EXPECT_EQ(flipped.values, picture.values);
  EXPECT_EQ(message(bmp.substr(0, bmp.size() - 1)),
            "x: truncated: the pixels at offset 54 take 72 bytes, the file has 71 there");
  const int32_t least = INT32_MIN;
  std::memcpy(bmp.data() + 22, &least, sizeof least);
  EXPECT_EQ(message(bmp), "x: declares 8x2147483648 pixels, expected 1 to 134217728");
}

TEST(ImageDecoder, ReadsOrRefusesFlippedBits) {
  const Image picture = test_picture(24, 24);
  for (const std::string& whole :
       {jpeg_bytes(picture), png_bytes(picture), bmp_bytes(picture), kPpm, kPaletteBmp, kGif})
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
      message(flipped);
    }
}

// stb_image does not compare checksums, and so would give other pixels.
TEST(ImageDecoder, RefusesAPngWithAWrongChecksum) {
  const std::string whole = png_bytes(test_picture(24, 24));
  const size_t data = whole.find("IDAT");
  for (size_t at = data + 4; at < whole.size() - 16; ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    EXPECT_TRUE(
        message(flipped).starts_with(join({"x: damaged PNG: the chunk at offset ", data - 4, " has the checksum "})))
        << at << message(flipped);
  }
}

TEST(ImageDecoder, TakesNoMoreMemoryThanThePixelsThatAreDeclared) {
  std::string png = png_bytes(4000, 4000, 1, std::vector<uint8_t>(16'000'000));
  const std::string small = png_bytes(1, 1, 1, {0});
  std::copy_n(small.begin() + 8, 25, png.begin() + 8);  // its IHDR: one pixel
  EXPECT_EQ(message(png), "x: its data give more than the 1x1 pixels that it declares");
  EXPECT_EQ(decode(small, 1).values, std::vector<uint8_t>{0});
}

TEST(ImageDecoder, RefusesTablesThatItsLibraryWouldWritePast) {
  const std::string jpeg = jpeg_bytes(test_picture(16, 16));
  const size_t table = jpeg.find("\xff\xc4");
  EXPECT_EQ(message(std::string(jpeg).replace(table + 5, 16, 16, '\x7f')),
            join({"x: damaged JPEG: found a Huffman table of more than 255 codes at offset ", table}));
}

TEST(ImageDecoder, ReadsPnmOf8BitsAlone) {
  EXPECT_EQ(decode("P5 2 1 255\n\x07\x09", 1).values, (std::vector<uint8_t>{7, 9}));
  EXPECT_EQ(message("P5 1 1 65535\n\x01\x02"),
            "x: found no whole image (PNM of 16 bits), expected PNG, JPEG, BMP, GIF or PNM");
  EXPECT_EQ(message("P5 2 1 15\n\x07\x09"), "x: found a PNM whose largest value is '15', expected 255");
}

TEST(ImageDecoder, SaysWhatIsNoPicture) {
  EXPECT_EQ(message("not an image"),
            "x: found no whole image (the file has another format), expected PNG, JPEG, BMP, GIF or PNM");
  EXPECT_TRUE(message("").starts_with("x: found no whole image (")) << message("");
}

TEST(ImageDecoder, ReadsRealPhotographsAndRefusesDamagedOnes) {
  const char* data = std::getenv("TERN_TEST_DATA");
  if (!data) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with images/ in it";
  TarArchive archive(open_source(std::filesystem::path(data) / "images" / "images.tar"));
  int read = 0, turned = 0;
  std::vector<std::string> refused;
  while (const auto source = archive.next()) {
    std::vector<uint8_t> file(source->most_bytes());
    source->read(file);
    try {
      const DecodedImage image = decode_image(file, source->name(), 3);
      ++read;
      turned += image.orientation() != 1;
      if (source->name().find("can_opener") == std::string::npos) continue;
      const Image upright_image = upright(image.view(), image.orientation());
      EXPECT_EQ(image.orientation(), 6);
      EXPECT_EQ(upright_image.width, 294);
      EXPECT_EQ(upright_image.height, 392);
    } catch (const InputError& error) {
      refused.push_back(source->name().substr(source->name().rfind('/') + 1));
    }
  }
  std::ranges::sort(refused);
  EXPECT_EQ(read, 83 + 40 + 40 + 1);
  EXPECT_EQ(turned, 1);
  EXPECT_EQ(refused,
            (std::vector<std::string>{"empty.JPEG", "header_only.JPEG", "text_not_image.JPEG", "truncated_half.JPEG"}));
}

TEST(ImageDecoder, NamesAFileThatIsNone) {
  const TemporaryFolder folder;
  const std::string none = folder.path() / "none.png";
  EXPECT_EQ(message_of<InputError>([&] { read_image(none); }), none + ": cannot be read: No such file or directory");
  EXPECT_EQ(message_of<InputError>([&] { read_image(folder.path()); }),
            folder.path().string() + ": is a folder, expected an image file");
  write_file(folder.path() / "x.jpg", with_orientation(jpeg_bytes(test_picture(30, 20)), 6));
  EXPECT_EQ(read_image(folder.path() / "x.jpg", 3).width, 20);
}

}  // namespace
}  // namespace tern
