#include "tern/data/byte_source.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>

#include "tern/core/error.h"
#include "tern/data/packed_source.h"

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

bool begins_with(const std::vector<uint8_t>& file, std::initializer_list<uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

}  // namespace

std::unique_ptr<ByteSource> open_source(std::string name, std::vector<uint8_t> file) {
  if (begins_with(file, {0x1f, 0x8b})) return gzip_source(std::move(name), std::move(file));
  if (begins_with(file, {0xfd, '7', 'z', 'X', 'Z', 0})) return xz_source(std::move(name), std::move(file));
  return std::make_unique<PlainSource>(std::move(name), std::move(file));
}

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path) {
  return open_source(path.string(), read_bytes(path));
}

std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  check_input(!error, path.string(), ": cannot be read: ", error.message());
  std::ifstream stream(path, std::ios::binary);
  std::vector<uint8_t> file(size);
  stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(size));
  check_input(stream.good(), path.string(), ": read ", std::max<std::streamsize>(stream.gcount(), 0), " of ", size,
              " bytes");
  return file;
}

}  // namespace tern
