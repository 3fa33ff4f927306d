#include "tern/data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>

#include "tern/core/error.h"

namespace tern {

struct ByteSource::Inflater {
  z_stream stream = {};
  bool ended = false;

  Inflater() {
    constexpr int kGzipOnly = 15 + 16;
    check(inflateInit2(&stream, kGzipOnly) == Z_OK, "zlib: inflateInit2 failed");
  }
  ~Inflater() { inflateEnd(&stream); }
};

ByteSource::ByteSource(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  check_input(!error, path.string(), ": ", error.message());
  std::ifstream stream(path, std::ios::binary);
  file_.resize(size);
  stream.read(reinterpret_cast<char*>(file_.data()), static_cast<std::streamsize>(size));
  check_input(stream.good(), path.string(), ": read ", std::max<std::streamsize>(stream.gcount(), 0), " of ", size,
              " bytes");
  if (size < 2 || file_[0] != 0x1f || file_[1] != 0x8b) return;
  inflater_ = std::make_unique<Inflater>();
  inflater_->stream.next_in = file_.data();
  inflater_->stream.avail_in = static_cast<uInt>(size);
  check_input(inflater_->stream.avail_in == size, path.string(), ": ", size,
              " bytes, expected less than 4 GiB of gzip");
}

ByteSource::~ByteSource() = default;

uint64_t ByteSource::most_bytes() const { return inflater_ ? file_.size() * 1032 : file_.size(); }

size_t ByteSource::read(std::span<uint8_t> bytes) {
  if (!inflater_) {
    const size_t count = std::min(bytes.size(), file_.size() - position_);
    std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(position_), count, bytes.begin());
    position_ += count;
    return count;
  }
  auto& stream = inflater_->stream;
  size_t count = 0;
  while (count < bytes.size() && !inflater_->ended) {
    const auto room = static_cast<uInt>(std::min<size_t>(bytes.size() - count, 1u << 30));
    stream.next_out = bytes.data() + count;
    stream.avail_out = room;
    const int status = inflate(&stream, Z_NO_FLUSH);
    count += room - stream.avail_out;
    const size_t offset = file_.size() - stream.avail_in;
    if (status == Z_STREAM_END) {
      inflater_->ended = true;
      check_input(stream.avail_in == 0, path_.string(), ": ", stream.avail_in,
                  " bytes follow the end of the gzip stream at offset ", offset, ", expected none");
    } else if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out != 0)) {
      fail_input({path_.string(), ": truncated: the gzip stream goes on after the file's ", file_.size(), " bytes"});
    } else {
      check_input(status == Z_OK, path_.string(), ": damaged gzip stream before offset ", offset, ": ",
                  stream.msg ? stream.msg : zError(status));
    }
  }
  return count;
}

}  // namespace tern
