#include "tern/data/byte_source.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>

#include "tern/core/error.h"

namespace tern {
namespace {

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::string name, std::vector<uint8_t> file) : ByteSource(std::move(name)), file_(std::move(file)) {}

  uint64_t most_bytes() const override { return file_.size(); }
  size_t read(std::span<uint8_t> bytes) override {
    const size_t count = std::min(bytes.size(), file_.size() - position_);
    std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(position_), count, bytes.begin());
    position_ += count;
    return count;
  }

 private:
  std::vector<uint8_t> file_;
  size_t position_ = 0;
};

/// A plain file, read in portions.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : ByteSource(path.string()), file_(path, std::ios::binary) {
    std::error_code error;
    bytes_ = std::filesystem::file_size(path, error);
    check_input(!error, name(), ": cannot be read: ", error.message());
    check_input(file_.is_open(), name(), ": cannot be opened: ", std::strerror(errno));
  }

  uint64_t most_bytes() const override { return bytes_; }
  size_t read(std::span<uint8_t> bytes) override {
    file_.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
    check_input(!file_.bad(), name(), ": reading failed before offset ",
                position_ + static_cast<size_t>(file_.gcount()));
    position_ += static_cast<size_t>(file_.gcount());
    return static_cast<size_t>(file_.gcount());
  }

 private:
  std::ifstream file_;
  uint64_t bytes_ = 0;
  size_t position_ = 0;
};

bool begins_with(std::span<const uint8_t> file, std::initializer_list<uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

constexpr size_t kLongestMagic = 6;
bool is_gzip(std::span<const uint8_t> file) { return begins_with(file, {0x1f, 0x8b}); }
bool is_xz(std::span<const uint8_t> file) { return begins_with(file, {0xfd, '7', 'z', 'X', 'Z', 0}); }

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::string name, std::vector<uint8_t> file) : ByteSource(std::move(name)), file_(std::move(file)) {
    stream_.next_in = file_.data();
    stream_.avail_in = static_cast<uInt>(file_.size());
    check_input(stream_.avail_in == file_.size(), this->name(), ": ", file_.size(),
                " bytes, expected less than 4 GiB of gzip");
    constexpr int kGzipOnly = 15 + 16;
    check(inflateInit2(&stream_, kGzipOnly) == Z_OK, "zlib: inflateInit2 failed");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  /// Deflate expands its input by a factor of 1032 at most.
  uint64_t most_bytes() const override { return file_.size() * 1032; }
  size_t read(std::span<uint8_t> bytes) override;

 private:
  std::vector<uint8_t> file_;
  z_stream stream_ = {};
  bool ended_ = false;
};

size_t GzipSource::read(std::span<uint8_t> bytes) {
  size_t count = 0;
  while (count < bytes.size() && !ended_) {
    const auto room = static_cast<uInt>(std::min<size_t>(bytes.size() - count, 1u << 30));
    stream_.next_out = bytes.data() + count;
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    count += room - stream_.avail_out;
    const size_t offset = file_.size() - stream_.avail_in;
    if (status == Z_STREAM_END) {
      ended_ = stream_.avail_in == 0;
      if (ended_) break;
      check_input(is_gzip({stream_.next_in, stream_.avail_in}), name(), ": ", stream_.avail_in,
                  " bytes follow the end of the gzip stream at offset ", offset, ", expected none");
      check(inflateReset(&stream_) == Z_OK, "zlib: inflateReset failed");  // the next member (RFC 1952, section 2.2)
    } else if (status == Z_BUF_ERROR || (status == Z_OK && stream_.avail_in == 0 && stream_.avail_out != 0)) {
      fail_input({name(), ": truncated: the gzip stream goes on after the file's ", file_.size(), " bytes"});
    } else {
      check_input(status == Z_OK, name(), ": damaged gzip stream before offset ", offset, ": ",
                  stream_.msg ? stream_.msg : zError(status));
    }
  }
  return count;
}

/// `xz -9` needs 65 MiB.
constexpr uint64_t kMostMemory = uint64_t{256} << 20;

const char* cause(lzma_ret status) {
  switch (status) {
    case LZMA_MEMLIMIT_ERROR: return "it takes more than 256 MiB of memory to unpack";
    case LZMA_OPTIONS_ERROR: return "its options are unknown to liblzma";
    case LZMA_UNSUPPORTED_CHECK: return "its kind of checksum is unknown to liblzma";
    default: return "its bytes or checksums are wrong";
  }
}

class XzSource final : public ByteSource {
 public:
  XzSource(std::string name, std::vector<uint8_t> file) : ByteSource(std::move(name)), file_(std::move(file)) {
    const auto flags = LZMA_TELL_UNSUPPORTED_CHECK | LZMA_CONCATENATED;
    check(lzma_stream_decoder(&stream_, kMostMemory, flags) == LZMA_OK, "liblzma: lzma_stream_decoder failed");
    stream_.next_in = file_.data();
    stream_.avail_in = file_.size();
  }
  ~XzSource() override { lzma_end(&stream_); }

  /// Repeating the longest match, 273 bytes, takes 14 range-coded bits of at least 0.022 bits each.
  uint64_t most_bytes() const override { return file_.size() * 7100; }
  size_t read(std::span<uint8_t> bytes) override;

 private:
  std::vector<uint8_t> file_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

size_t XzSource::read(std::span<uint8_t> bytes) {
  stream_.next_out = bytes.data();
  stream_.avail_out = bytes.size();
  while (stream_.avail_out > 0 && !ended_) {
    const lzma_ret status = lzma_code(&stream_, LZMA_FINISH);
    ended_ = status == LZMA_STREAM_END;
    check_input(status != LZMA_BUF_ERROR, name(), ": truncated: the xz stream goes on after the file's ", file_.size(),
                " bytes");
    check_input(ended_ || status == LZMA_OK, name(), ": damaged xz stream before offset ",
                file_.size() - stream_.avail_in, ": ", cause(status));
  }
  return bytes.size() - stream_.avail_out;
}

}  // namespace

std::unique_ptr<ByteSource> open_source(std::string name, std::vector<uint8_t> file) {
  if (is_gzip(file)) return std::make_unique<GzipSource>(std::move(name), std::move(file));
  if (is_xz(file)) return std::make_unique<XzSource>(std::move(name), std::move(file));
  return std::make_unique<PlainSource>(std::move(name), std::move(file));
}

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path) {
  FileSource file(path);
  std::vector<uint8_t> start(kLongestMagic);
  start.resize(file.read(start));
  if (is_gzip(start) || is_xz(start)) return open_source(path.string(), read_bytes(path));
  return std::make_unique<FileSource>(path);
}

std::vector<uint8_t> read_whole(ByteSource& source) {
  std::vector<uint8_t> bytes;
  std::array<uint8_t, 1 << 16> part;
  while (const size_t count = source.read(part)) bytes.insert(bytes.end(), part.begin(), part.begin() + count);
  return bytes;
}

std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  check_input(!error, path.string(), ": cannot be read: ", error.message());
  std::ifstream stream(path, std::ios::binary);
  check_input(stream.is_open(), path.string(), ": cannot be opened: ", std::strerror(errno));
  std::vector<uint8_t> file(size);
  stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(size));
  check_input(stream.good(), path.string(), ": read ", std::max<std::streamsize>(stream.gcount(), 0), " of ", size,
              " bytes");
  return file;
}

std::filesystem::path find_one_file(const std::filesystem::path& folder, const std::vector<std::string>& endings,
                                    const std::string& before, const std::string& after) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::any_of(endings, [&](const std::string& ending) { return name.ends_with(ending); }))
      found.push_back(entry.path());
  }
  check_input(found.size() == 1, before, found.size(), after);
  return found.front();
}

}  // namespace tern
