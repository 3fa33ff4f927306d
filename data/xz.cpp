#include <lzma.h>

#include "tern/core/error.h"
#include "tern/data/packed_source.h"

namespace tern {
namespace {

/// `xz -9` takes 65 MiB.
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

  /// A repeat of the longest match, 273 bytes, takes 14 range-coded bits of 0.022 bits each at least.
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

std::unique_ptr<ByteSource> xz_source(std::string name, std::vector<uint8_t> file) {
  return std::make_unique<XzSource>(std::move(name), std::move(file));
}

}  // namespace tern
