#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tern {

/// Bytes from first to last, whatever holds them. Used by one thread.
class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;

  /// Reads up to bytes.size() bytes and returns how many there were: fewer only at the end of what is whole. What is
  /// cut off or damaged is an InputError that says where.
  virtual size_t read(std::span<uint8_t> bytes) = 0;
  /// Bytes that there are at most in all.
  virtual uint64_t most_bytes() const = 0;
  /// How errors call it: the file's path, and the path within an archive.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// The bytes of a file, unpacked where it is gzip or xz (by its content, not its name).
std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path);
/// Likewise of a file that is in memory already.
std::unique_ptr<ByteSource> open_source(std::string name, std::vector<uint8_t> file);

/// A whole file as it is. An InputError names it where it cannot be read.
std::vector<uint8_t> read_bytes(const std::filesystem::path& path);

/// What `file` unpacks to; its checksums are held against it.
std::unique_ptr<ByteSource> gzip_source(std::string name, std::vector<uint8_t> file);
std::unique_ptr<ByteSource> xz_source(std::string name, std::vector<uint8_t> file);

}  // namespace tern
