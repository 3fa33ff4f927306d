#include "tern/data/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <exception>

#include "tern/core/error.h"

namespace tern {

struct TarArchive::Reader {
  std::unique_ptr<ByteSource> source;
  std::unique_ptr<archive, decltype(&archive_read_free)> handle{archive_read_new(), &archive_read_free};
  std::array<uint8_t, 1 << 16> block{};
  std::exception_ptr failure;  ///< the error of `source`; it must not pass through libarchive

  static la_ssize_t read_block(archive*, void* self, const void** block) {
    auto& reader = *static_cast<Reader*>(self);
    *block = reader.block.data();
    try {
      return static_cast<la_ssize_t>(reader.source->read(reader.block));
    } catch (...) {
      reader.failure = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  /// Throws the error of `status`, if it is one.
  void check_status(la_ssize_t status) const {
    if (failure) std::rethrow_exception(failure);
    if (status >= ARCHIVE_OK || status == ARCHIVE_WARN) return;
    const char* cause = archive_error_string(handle.get());
    fail_input({source->name(), ": damaged tar archive: ", cause ? cause : "no cause given"});
  }
};

class TarArchive::Member final : public ByteSource {
 public:
  Member(std::string name, uint64_t size, const Reader& reader)
      : ByteSource(std::move(name)), size_(size), reader_(reader) {}

  uint64_t most_bytes() const override { return size_; }
  size_t read(std::span<uint8_t> bytes) override {
    size_t count = 0;
    while (count < bytes.size()) {
      const la_ssize_t found = archive_read_data(reader_.handle.get(), bytes.data() + count, bytes.size() - count);
      reader_.check_status(found);
      if (found <= 0) break;
      count += static_cast<size_t>(found);
    }
    return count;
  }

 private:
  uint64_t size_;
  const Reader& reader_;
};

TarArchive::TarArchive(std::unique_ptr<ByteSource> archive) : reader_(std::make_unique<Reader>()) {
  reader_->source = std::move(archive);
  ::archive* handle = reader_->handle.get();
  check(handle && archive_read_support_format_tar(handle) == ARCHIVE_OK, "libarchive: no tar reader");
  reader_->check_status(archive_read_open(handle, reader_.get(), nullptr, &Reader::read_block, nullptr));
}

TarArchive::~TarArchive() = default;

std::unique_ptr<ByteSource> TarArchive::next() {
  Reader& reader = *reader_;
  archive_entry* entry = nullptr;
  do {
    const int status = archive_read_next_header(reader.handle.get(), &entry);
    if (status == ARCHIVE_EOF) {
      while (reader.source->read(reader.block) > 0) continue;
      return nullptr;
    }
    reader.check_status(status);
  } while (archive_entry_filetype(entry) != AE_IFREG);
  const char* path = archive_entry_pathname(entry);
  return std::make_unique<Member>(reader.source->name() + ": " + (path ? path : "?"),
                                  static_cast<uint64_t>(archive_entry_size(entry)), reader);
}

}  // namespace tern
