#include "tern/dist/comm/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastCharacters = 16;
constexpr size_t kMostCharacters = 4096;

std::string reason(int error) { return std::generic_category().message(error); }

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_;
};

JobToken checked(JobToken token, const std::string& source) {
  check_input(token.size() >= kLeastCharacters, source, ": the job token has ", token.size(), " characters, expected ",
              kLeastCharacters, " or more");
  return token;
}

/// Reads the first line of an open file. Errors name `path`.
JobToken read_token(const Descriptor& file, const fs::path& path) {
  struct stat status = {};
  const int error = ::fstat(file.number(), &status) == 0 ? 0 : errno;
  check_input(error == 0, path.string(), ": the job token cannot be read: ", reason(error));
  check_input(S_ISREG(status.st_mode), path.string(), ": the job token is in no regular file");
  check_input((status.st_mode & 077) == 0, path.string(), ": the job token is open to others, expected mode 0600");
  check_input(status.st_uid == ::geteuid() || status.st_uid == 0, path.string(), ": the job token belongs to user ",
              status.st_uid, ", expected user ", ::geteuid());
  std::array<char, kMostCharacters> text;
  const ssize_t length = ::read(file.number(), text.data(), text.size());
  check_input(length >= 0, path.string(), ": the job token cannot be read: ", reason(errno));
  const std::string_view whole(text.data(), static_cast<size_t>(length));
  return checked(JobToken(whole.substr(0, whole.find('\n'))), path.string());
}

/// Whether the folder exists, belongs to this user, and nobody else may write to it.
bool is_own_folder(const fs::path& folder) {
  struct stat status = {};
  return ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The path of the token that the ranks of this machine share. Its folder exists and is this user's own.
fs::path shared_place() {
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime && is_own_folder(runtime))
    return fs::path(runtime) / "tern-token";
  const char* home = std::getenv("HOME");
  check_input(home && *home, "neither XDG_RUNTIME_DIR nor HOME names a folder for the job token");
  const fs::path cache = fs::path(home) / ".cache", folder = cache / "tern";
  ::mkdir(cache.c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
  check_input(is_own_folder(folder), folder.string(),
              ": expected a folder of this user's that others cannot write to (chmod go-w), for the job token");
  return folder / "token";
}

/// The token at `path`; none if there is no file.
std::optional<JobToken> find_shared(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!file.open() && errno == ENOENT) return {};
  check_input(file.open(), path.string(), ": the job token cannot be read: ", reason(errno));
  return read_token(file, path);
}

/// Makes the file at `path` in one step, unless another process has made it before.
void make_shared_file(const fs::path& path) {
  const fs::path draft = path.string() + "." + random_id(8);
  const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  int error = file.open() ? 0 : errno;
  const std::string text = make_token() + "\n";
  if (error == 0) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written != std::ssize(text)) error = written < 0 ? errno : ENOSPC;
  }
  if (error == 0 && ::link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) error = errno;
  if (file.open()) ::unlink(draft.c_str());
  check_input(error == 0, path.string(), ": the job token cannot be written: ", reason(error));
}

JobToken shared_token() {
  const fs::path path = shared_place();
  if (auto token = find_shared(path)) return *token;
  make_shared_file(path);
  const auto token = find_shared(path);
  check_input(token.has_value(), path.string(), ": the job token was removed while this rank read it");
  return *token;
}

}  // namespace

JobToken read_token(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  check_input(file.open(), path.string(), ": the job token cannot be read: ", reason(errno));
  return read_token(file, path);
}

JobToken token_from_environment() {
  if (const char* file = std::getenv("TERN_TOKEN_FILE"); file && *file) return read_token(file);
  if (const char* token = std::getenv("TERN_TOKEN")) return checked(token, "TERN_TOKEN");
  return {};
}

JobToken token_of_machine() {
  if (JobToken token = token_from_environment(); !token.empty()) return token;
  try {
    return shared_token();
  } catch (const InputError& error) {
    throw InputError(join({error.what(), "; TERN_TOKEN_FILE or TERN_TOKEN can give a job token instead"}));
  }
}

JobToken make_token() { return random_id(32); }

}  // namespace tern
