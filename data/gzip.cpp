#include <zlib.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/data/packed_source.h"

namespace tern {
namespace {

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

  /// 1032 to 1 is the most that deflate reaches.
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
      ended_ = true;
      check_input(stream_.avail_in == 0, name(), ": ", stream_.avail_in,
                  " bytes follow the end of the gzip stream at offset ", offset, ", expected none");
    } else if (status == Z_BUF_ERROR || (status == Z_OK && stream_.avail_in == 0 && stream_.avail_out != 0)) {
      fail_input({name(), ": truncated: the gzip stream goes on after the file's ", file_.size(), " bytes"});
    } else {
      check_input(status == Z_OK, name(), ": damaged gzip stream before offset ", offset, ": ",
                  stream_.msg ? stream_.msg : zError(status));
    }
  }
  return count;
}

}  // namespace

std::unique_ptr<ByteSource> gzip_source(std::string name, std::vector<uint8_t> file) {
  return std::make_unique<GzipSource>(std::move(name), std::move(file));
}

}  // namespace tern
