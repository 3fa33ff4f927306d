#include "tern/core/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_path(const fs::path& path, const char* what, int error) {
  fail_input({path.string(), ": ", what, ": ", std::generic_category().message(error)});
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

constexpr const char* kMark = ".tmp-";
constexpr size_t kIdBytes = 8;

bool is_temporary_of(const fs::path& path, const std::string& name) {
  const std::string begin = path.filename().string() + kMark;
  return name.starts_with(begin) && name.size() == begin.size() + 2 * kIdBytes &&
         name.find_first_not_of("0123456789abcdef", begin.size()) == std::string::npos;
}

/// Removes the temporary files of `path` that killed processes left. A living process holds a lock on its own.
void remove_abandoned(const fs::path& path) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder_of(path), ignored), end; entry != end; entry.increment(ignored))
    if (is_temporary_of(path, entry->path().filename().string())) found.push_back(entry->path());
  for (const fs::path& file : found) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(file.c_str());
    ::close(descriptor);
  }
}

/// Locks a new temporary file. Returns false if another process took it for an abandoned one and removed it.
bool keep(int descriptor) {
  while (::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
  struct stat status = {};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

/// What `path` names, through symbolic links. The target may be missing.
fs::path target_of(const fs::path& path) {
  constexpr int kMostLinks = 40;  // the limit of Linux
  fs::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(target, error))) return target;
    target = target.parent_path() / fs::read_symlink(target, error);
  }
  fail_input({path.string(), ": cannot be written: ", std::strerror(ELOOP)});
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check_input(!fs::exists(status) || fs::is_regular_file(status), path.string(), ": cannot be written: it is ",
              fs::is_directory(status) ? "a folder" : "a special file", ", expected a regular file or none");
  path_ = target_of(path);
  remove_abandoned(path_);
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    const fs::path temporary = path_.string() + kMark + random_id(kIdBytes);
    descriptor_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail_system("cannot be written", errno);
    temporary_ = temporary;
  } while (!keep(descriptor_));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(size_, bytes);
  size_ += bytes.size();
}

void AtomicFile::rewrite(uint64_t offset, std::span<const std::byte> bytes) {
  check(offset + bytes.size() <= size_, "rewrite: bytes ", offset, " to ", offset + bytes.size(), " of ", size_);
  write_at(offset, bytes);
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system("writing failed", errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_system("writing failed", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system("cannot be replaced", errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));  // last, because it ends the lock; fsync has told all errors
  sync_folder(folder_of(path_));
}

void AtomicFile::fail_system(const char* what, int error) const { fail_path(path_, what, error); }

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_path(folder, "cannot be opened", errno);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // EINVAL: this file system does not support fsync on folders and keeps them in order by itself.
  if (error != 0 && error != EINVAL) fail_path(folder, "cannot be synchronised", error);
}

bool make_folder(const fs::path& folder) {
  const fs::path path = fs::absolute(folder);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return false;
  if (!path.has_filename()) return make_folder(path.parent_path());  // the path ends with a slash
  make_folder(path.parent_path());
  if (const int error = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno) {
    if (error == EEXIST && fs::is_directory(path, ignored)) return false;  // another process made it first
    fail_path(folder, "no folder can be made there", error);
  }
  sync_folder(path.parent_path());
  return true;
}

void check_writable(const fs::path& path) { const AtomicFile probe(path); }

void check_writable_folder(const fs::path& folder) {
  struct Made {
    std::vector<fs::path> folders;
    ~Made() {
      std::error_code ignored;
      for (const auto& path : folders) fs::remove(path, ignored);
    }
  } made;
  std::error_code error;
  for (fs::path path = fs::absolute(folder); !fs::exists(path, error); path = path.parent_path())
    made.folders.push_back(path);
  fs::create_directories(folder, error);
  check_input(!error, folder.string(), ": no folder can be made there: ", error.message());
  check_writable(folder / "probe");
}

}  // namespace tern
