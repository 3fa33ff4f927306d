#include "tern/data/image_decoder.h"

#include <cstdint>
#include <cstdlib>

namespace {

/// What stb_image may allocate at once for the image that this thread decodes, in bytes. Without a limit, a file of 1
/// MB that declares one pixel could take 1 GB. Afterwards: why an allocation failed.
struct Allowance {
  size_t most = SIZE_MAX;
  bool exceeded = false, system_refused = false;

  template <class Allocate>
  void* take(size_t bytes, const Allocate& allocate) {
    exceeded |= bytes > most;
    void* const memory = bytes > most ? nullptr : allocate();
    system_refused |= bytes <= most && !memory;
    return memory;
  }
};
thread_local Allowance allowance;

void* allocate(size_t bytes) {
  return allowance.take(bytes, [&] { return std::malloc(bytes); });
}
void* reallocate(void* memory, size_t bytes) {
  return allowance.take(bytes, [&] { return std::realloc(memory, bytes); });
}

}  // namespace

#define STBI_MALLOC(bytes) allocate(bytes)
#define STBI_REALLOC(memory, bytes) reallocate(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_PIC
#define STBI_NO_PSD
#define STBI_NO_TGA
#define STBI_FAILURE_USERMSG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>

#include "tern/core/error.h"
#include "tern/data/byte_source.h"
#include "tern/data/jpeg_header.h"

namespace tern {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;

std::string_view text_of(std::span<const uint8_t> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// A file format that the decoder accepts.
struct Format {
  std::string_view begin;
  int64_t pixels_per_byte;  ///< most pixels that one byte of a whole file can encode
};

constexpr std::string_view kJpegBegin = "\xff\xd8\xff", kPngBegin = "\x89PNG\r\n\x1a\n";
constexpr Format kFormats[] = {
    {kJpegBegin, 8 * 64},    // 1 bit per block of 8×8 in the first progressive scan
    {kPngBegin, 8 * 1032},   // 1 bit per pixel, and deflate expands by 1032 at most
    {"GIF8", 4096 * 2 / 3},  // LZW's longest string in 12 bits
    {"BM", 8},
    {"P5", 1},
    {"P6", 1},
};

void check_extent(std::string_view file, const std::string& name, int64_t pixels_per_byte, int64_t width,
                  int64_t height) {
  check_input(width > 0 && height > 0 && width * height <= kMostPixels, name, ": declares ", width, "x", height,
              " pixels, expected 1 to ", kMostPixels);
  const int64_t room = std::ssize(file) * pixels_per_byte;
  check_input(width * height <= room, name, ": declares ", width, "x", height, " pixels, its ", file.size(),
              " bytes hold ", room, " at most");
}

/// Checks what some versions of stb_image do not check. They invent pixels if the data end early, and read and write
/// out of bounds of their tables.
void check_jpeg(std::string_view file, const std::string& name, const JpegHeader& header) {
  check_input(header.damage.empty(), name, ": damaged JPEG: found a ", header.damage, " at offset ",
              header.damage_offset);
  const size_t scan = header.scan;
  check_input(scan == 0 || file.substr(scan).rfind("\xff\xd9") != std::string_view::npos, name,
              ": truncated: no end of the image (FF D9) follows the scan at offset ", scan, " in ", file.size(),
              " bytes");
}

/// Checks that the chunk lengths of a PNG are within the file; stb_image allocates memory for them without this check.
/// Checks the size from IHDR too, because stb_image refuses a large size with its own message. Checks the chunks'
/// checksums, which stb_image does not.
void check_png(std::string_view file, const std::string& name, int64_t pixels_per_byte) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(file[i]);
    return value;
  };
  for (size_t at = kPngBegin.size(); file.size() - at >= 12;) {
    const size_t length = number(at);
    check_input(length <= file.size() - at - 12, name, ": truncated: the chunk at offset ", at, " declares ", length,
                " bytes, the file has ", file.size() - at - 12);
    if (file.substr(at + 4, 4) == "IHDR" && length >= 8)
      check_extent(file, name, pixels_per_byte, number(at + 8), number(at + 12));
    const auto* const chunk = reinterpret_cast<const Bytef*>(file.data() + at + 4);  // its type, then its data
    const auto sum = static_cast<uint32_t>(crc32_z(0, chunk, 4 + length));
    check_input(sum == number(at + 8 + length), name, ": damaged PNG: the chunk at offset ", at, " has the checksum ",
                sum, ", expected ", number(at + 8 + length));
    if (file.substr(at + 4, 4) == "IEND") return;
    at += 12 + length;
  }
  fail_input({name, ": truncated: no end of the image (IEND) in ", file.size(), " bytes"});
}

/// The little-endian number in `bytes` bytes at `at`, with zeros behind the end of the file.
uint32_t little_endian(std::string_view file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes && at + i < file.size(); ++i)
    value |= uint32_t{static_cast<uint8_t>(file[at + i])} << 8 * i;
  return value;
}

/// Checks that pixels of `bytes` bytes at `at` are within the file. If they are not, stb_image invents the rest, or
/// leaves it as it was in memory.
void check_pixels(std::string_view file, const std::string& name, size_t at, size_t bytes) {
  check_input(at <= file.size() && bytes <= file.size() - at, name, ": truncated: the pixels at offset ", at, " take ",
              bytes, " bytes, the file has ", file.size() - std::min(at, file.size()), " there");
}

/// Checks what stb_image does not: the largest value, to which it does not scale, and that all pixels are there.
void check_pnm(std::string_view file, const std::string& name, size_t width, size_t height) {
  std::string_view number;
  size_t at = 2;
  for (int i = 0; i < 3; ++i) {  // width, height and the largest value, with space and comments before each
    while ((at = std::min(file.find_first_not_of(" \t\n\v\f\r", at), file.size())) < file.size() && file[at] == '#')
      at = std::min(file.find_first_of("\n\r", at), file.size());
    const size_t end = std::min(file.find_first_not_of("0123456789", at), file.size());
    number = file.substr(at, end - at);
    at = end;
  }
  check_input(number == "255", name, ": found a PNM whose largest value is '", number, "', expected 255");
  check_pixels(file, name, at + 1, width * height * (file[1] == '6' ? 3 : 1));
}

/// Checks that all pixels of a BMP are there. stb_image reads only kinds that are not compressed.
void check_bmp(std::string_view file, const std::string& name, size_t width, size_t height) {
  constexpr size_t kOldHeader = 12;
  const bool old = little_endian(file, 14, 4) == kOldHeader;
  const size_t bits = width * little_endian(file, old ? 24 : 28, 2);
  // Rows have a multiple of 4 bytes, but nothing is lost without the end of the last one.
  check_pixels(file, name, little_endian(file, 10, 4), (bits + 31) / 32 * 4 * (height - 1) + (bits + 7) / 8);
}

/// Checks that the blocks of a GIF go on to its end.
void check_gif(std::string_view file, const std::string& name) {
  constexpr uint32_t kExtension = 0x21, kPicture = 0x2c;
  const auto byte = [&](size_t at) { return little_endian(file, at, 1); };
  const auto palette = [&](size_t flags) { return byte(flags) & 0x80 ? size_t{3} * 2 << (byte(flags) & 7) : 0; };
  size_t at = 13 + palette(10);
  while (at < file.size()) {
    const uint32_t kind = byte(at);
    if (kind != kExtension && kind != kPicture) return;  // the end, or damage, which stb_image finds
    at += kind == kExtension ? 2 : 11 + palette(at + 9);
    while (at < file.size() && byte(at) != 0) at += 1 + byte(at);
    ++at;
  }
  fail_input({name, ": truncated: no end of the image (3B) in ", file.size(), " bytes"});
}

/// Blends transparent pixels with white. Each pixel has `channels` colour values and an alpha value.
void lay_on_white(std::span<uint8_t> pixels, size_t channels) {
  for (size_t at = 0; at < pixels.size(); at += channels + 1) {
    const int alpha = pixels[at + channels];
    for (size_t i = at; i < at + channels; ++i)
      pixels[i] = static_cast<uint8_t>((pixels[i] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

}  // namespace

DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels) {
  check(channels == 1 || channels == 3, "decode_image: ", channels, " channels, expected 1 or 3");
  check_input(file.size() <= INT_MAX, name, ": found ", file.size(), " bytes, expected an image of less than 2 GiB");
  const auto size = static_cast<int>(file.size());
  const std::string_view text = text_of(file);
  const auto check_decoded = [&](bool decoded, const char* why) {
    check_input(decoded, name, ": found no whole image (", why, "), expected PNG, JPEG, BMP, GIF or PNM");
  };
  const auto format = std::ranges::find_if(kFormats, [&](const Format& each) { return text.starts_with(each.begin); });
  check_decoded(format != std::end(kFormats), "the file has another format");
  DecodedImage image;
  if (format->begin == kJpegBegin) {
    const JpegHeader header = read_jpeg_header(file);
    check_jpeg(text, name, header);
    image.orientation_ = header.orientation;
  }
  if (format->begin == kPngBegin) check_png(text, name, format->pixels_per_byte);
  // Some versions of stb_image read out of bounds after they convert PNM's 16 bits.
  check_decoded(!format->begin.starts_with('P') || !stbi_is_16_bit_from_memory(file.data(), size), "PNM of 16 bits");
  int width = 0, height = 0, found = 0;
  const auto check_memory = [&](const Allowance& used) {
    if (used.system_refused) throw ResourceError(name + ": the system gave no memory to decode it");
  };
  const bool known = stbi_info_from_memory(file.data(), size, &width, &height, &found) != 0;
  check_memory(std::exchange(allowance, {}));
  check_decoded(known, known ? "" : stbi_failure_reason());
  const bool is_bmp = format->begin == "BM";
  const int64_t lines = is_bmp ? std::abs(int64_t{height}) : height;  // negative: a BMP whose first row is at the top
  check_extent(text, name, format->pixels_per_byte, width, lines);
  const auto columns = static_cast<size_t>(width), rows = static_cast<size_t>(lines);
  if (format->begin == "GIF8") check_gif(text, name);
  if (is_bmp) check_bmp(text, name, columns, rows);
  if (format->begin.starts_with('P')) check_pnm(text, name, columns, rows);
  // Always ask for one channel more (alpha), even if it is unused: stb_image vectorizes colour only for four channels.
  const int pixel_bytes = channels + 1;
  constexpr size_t kMargin = 64, kMostPixelBytes = 32;  // blocks at the borders; 4 channels of 16 bits, doubled to grow
  allowance = {.most = kMostPixelBytes * (columns + kMargin) * (rows + kMargin) + 2 * file.size() + (size_t{1} << 20)};
  image.pixels_ = {stbi_load_from_memory(file.data(), size, &width, &height, &found, pixel_bytes), &stbi_image_free};
  const Allowance used = std::exchange(allowance, {});
  check_memory(used);
  check_input(image.pixels_ || !used.exceeded, name, ": its data give more than the ", columns, "x", rows,
              " pixels that it declares");
  check_decoded(image.pixels_ != nullptr, image.pixels_ ? "" : stbi_failure_reason());
  image.view_ = {.values = image.pixels_.get(),
                 .width = width,
                 .height = height,
                 .channels = channels,
                 .pixel_bytes = pixel_bytes,
                 .row_bytes = static_cast<size_t>(width) * static_cast<size_t>(pixel_bytes)};
  if (found == 2 || found == 4)
    lay_on_white({image.pixels_.get(), image.view_.row_bytes * static_cast<size_t>(height)},
                 static_cast<size_t>(channels));
  return image;
}

Image read_image(const std::filesystem::path& path, int channels) {
  check_input(!std::filesystem::is_directory(path), path.string(), ": is a folder, expected an image file");
  const DecodedImage decoded = decode_image(read_bytes(path), path.string(), channels);
  return upright(decoded.view(), decoded.orientation());
}

}  // namespace tern
