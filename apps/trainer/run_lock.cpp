#include "tern/apps/trainer/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"

namespace tern {

RunLock::RunLock(const std::string& folder) : folder_(folder), made_(make_folder(folder)) {
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  fail_input({"--checkpoint: ", folder, ": another run is at work there; wait for its end, or name another folder"});
}

RunLock::~RunLock() {
  std::error_code not_empty;
  if (made_) std::filesystem::remove(folder_, not_empty);
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tern
