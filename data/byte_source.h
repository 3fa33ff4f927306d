#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tern {

/// A stream of bytes, read once from first to last: a plain file, a packed file or a file in an archive. One thread
/// uses it.
class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;

  /// Reads up to bytes.size() bytes and returns how many it read. The count is smaller only at the end of the stream.
  /// Throws InputError if the stream is truncated or damaged; the message gives the offset.
  virtual size_t read(std::span<uint8_t> bytes) = 0;
  /// Upper bound on the length of the whole stream, in bytes.
  virtual uint64_t most_bytes() const = 0;
  /// Name for error messages: the file's path and, for a file in an archive, its path in the archive.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// Opens a file. Unpacks it if its content (not its name) is gzip or xz, and verifies its checksums. Throws InputError
/// if the file cannot be read.
std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path);
/// Opens a file that is already in memory; unpacks it in the same way.
std::unique_ptr<ByteSource> open_source(std::string name, std::vector<uint8_t> file);

/// Reads what is left of a stream.
std::vector<uint8_t> read_whole(ByteSource& source);

/// Reads a whole file without unpacking it. Throws InputError, with the path, if the file cannot be read.
std::vector<uint8_t> read_bytes(const std::filesystem::path& path);

/// The one file in `folder` whose name ends in one of `endings`. Throws InputError if there is none or more than one.
/// The message is `before`, the number of such files, and `after`.
std::filesystem::path find_one_file(const std::filesystem::path& folder, const std::vector<std::string>& endings,
                                    const std::string& before, const std::string& after);

}  // namespace tern
