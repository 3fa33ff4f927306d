#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tern {

/// A file that appears under its name complete or not at all. `write` goes to a temporary file in the same folder, with
/// the name "NAME.tmp-" and 16 random hexadecimal digits. `commit` renames it to the final name. The temporary file is
/// always a new file, and no symbolic link is followed when it is opened. Before `commit`, and after a failure, an
/// older file of the same name is unchanged and the temporary file is removed. The only exception is the last step of
/// `commit`. A killed process leaves its temporary file; the next AtomicFile of the same name removes it. Used by one
/// thread. Failures throw InputError with the path and the system's reason.
class AtomicFile {
 public:
  /// Throws if `path` exists and is not a regular file. If `path` is a symbolic link, its target is replaced.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `bytes`.
  void write(std::span<const std::byte> bytes);
  /// Overwrites bytes from `offset` on. Throws if not all of them were written before.
  void rewrite(uint64_t offset, std::span<const std::byte> bytes);
  /// Makes the file durable and gives it its name: fsync, rename, fsync of the folder. Call it once, last. If the fsync
  /// of the folder fails, it throws although the complete new file is in place. After a power loss, the name may then
  /// stand for the old file or the new one.
  void commit();

 private:
  [[noreturn]] void fail_system(const char* what, int error) const;
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// Makes the names in `folder` durable (fsync). Throws InputError with the system's reason.
void sync_folder(const std::filesystem::path& folder);
/// Makes `folder` and its missing parent folders, durably. Returns true if it made `folder`, false if it existed.
/// Throws InputError with the system's reason.
bool make_folder(const std::filesystem::path& folder);

/// Throws the InputError that the constructor of `AtomicFile` would throw for `path`. Call it before long work.
void check_writable(const std::filesystem::path& path);
/// As `check_writable`, for files in `folder`. If `folder` is missing, makes it for the check and removes it again.
void check_writable_folder(const std::filesystem::path& folder);

}  // namespace tern
