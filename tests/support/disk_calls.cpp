#include "tests/support/disk_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>

namespace tern {
namespace {

std::mutex mutex;
std::optional<std::vector<std::string>> calls;

void note(const char* call, const std::string& path) {
  const std::scoped_lock lock(mutex);
  if (calls) calls->push_back(std::string(call) + " " + path);
}

void note_sync(int descriptor) {
  std::error_code gone;
  note("sync", std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), gone).string());
}

}  // namespace

DiskCalls::DiskCalls() {
  const std::scoped_lock lock(mutex);
  calls.emplace();
}

DiskCalls::~DiskCalls() {
  const std::scoped_lock lock(mutex);
  calls.reset();
}

std::vector<std::string> DiskCalls::found() {
  const std::scoped_lock lock(mutex);
  return calls.value();
}

}  // namespace tern

extern "C" {

int fsync(int descriptor) {
  tern::note_sync(descriptor);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  tern::note_sync(descriptor);
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int rename(const char* from, const char* to) noexcept {
  tern::note("rename", to);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
