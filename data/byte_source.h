#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace tern {

/// The bytes of a file from first to last, unpacked where the file is gzip (by its content, not its name). Every
/// error is an InputError that names the file, and where it matters the offset in it.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();

  /// Reads up to bytes.size() bytes and returns how many there were: fewer only at the end of a whole file. A gzip
  /// stream that is cut off or damaged is an error.
  size_t read(std::span<uint8_t> bytes);
  /// Bytes that the whole file can unpack to at most: 1032 to 1 is the most that deflate reaches.
  uint64_t most_bytes() const;

 private:
  struct Inflater;

  std::filesystem::path path_;
  std::vector<uint8_t> file_;
  size_t position_ = 0;
  std::unique_ptr<Inflater> inflater_;  ///< null for a plain file
};

}  // namespace tern
