#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tern {

/// A file that appears under its name whole or not at all: what is written goes to a temporary file in the same
/// folder ("NAME.tmp-" and 16 random digits), which `commit` puts in place. The temporary is always a new file: no link
/// that somebody put there is followed. Until `commit`, and after any failure, an older file of that name stays as it
/// was; the temporary is removed. The one exception is the last step of `commit`. Used by one thread. Failures are
/// InputErrors with the path and the system's reason.
class AtomicFile {
 public:
  /// A path that is there already must be a regular file; a symbolic link is followed.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends.
  void write(std::span<const std::byte> bytes);
  /// Overwrites bytes from `offset` on, all of them written before.
  void rewrite(uint64_t offset, std::span<const std::byte> bytes);
  /// Makes the file durable and gives it its name: fsync, rename, fsync of the folder. Called once, last. Where the
  /// folder's fsync fails, the error comes although the new file is in place, whole: after a loss of power, either the
  /// old or the new one may stand there.
  void commit();

 private:
  [[noreturn]] void fail_system(const char* what, int error) const;
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// Makes the names in a folder durable. An InputError gives the system's reason.
void sync_folder(const std::filesystem::path& folder);
/// Makes a folder and those above it where they are missing, durably. Returns whether it made `folder`. An InputError
/// gives the system's reason.
bool make_folder(const std::filesystem::path& folder);

/// Throws the InputError that an `AtomicFile` of this path would meet at its start: to be called before long work.
void check_writable(const std::filesystem::path& path);
/// As `check_writable`, for files in `folder`, which may be missing: makes it, and takes back what it made.
void check_writable_folder(const std::filesystem::path& folder);

}  // namespace tern
