// A library that the campaign `./dev chaos` preloads into tern's programs (LD_PRELOAD). It makes calls to the system
// fail, or does something at the k-th of them. Variables of the environment say what it does:
//
//   CHAOS_FOLDER PATH   calls on files in this folder count
//   CHAOS_NAME TEXT     of these, only files with this text in their path
//   CHAOS_RANK R        only in the process with TERN_RANK=R; "none": only in one without TERN_RANK
//   CHAOS_AT CALL K     the K-th CALL acts: write, fsync or rename
//   CHAOS_DO ...        what it does: "fail ERRNO", "signal N self" or "signal N parent"
//   CHAOS_BYTES N       the disk has room for N bytes, then writes fail
//   CHAOS_ACTED PATH    a file that is made when a fault acts. If it exists, CHAOS_AT acts no more
//   CHAOS_STEP_MS N     a line of a log takes N milliseconds
//   CHAOS_CLOCK N       each time that is read is N seconds later, or N seconds earlier, in turn
//   CHAOS_RELAY PORT    TCP connections go to this port of 127.0.0.1, and begin with the port that was asked for
//   CHAOS_WAIT_FOR PATH TCP connections wait until this file exists, 8 s at most
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

const char* variable(const char* key) {
  const char* text = std::getenv(key);
  return text && *text ? text : nullptr;
}
long number(const char* key, long otherwise) {
  const char* text = variable(key);
  return text ? std::atol(text) : otherwise;
}
bool is_here() {
  const char *rank = variable("TERN_RANK"), *wanted = variable("CHAOS_RANK");
  return !wanted || std::strcmp(wanted, rank ? rank : "none") == 0;
}

/// What the variables say. Read at the first call, because other libraries may call before this one is ready.
struct Plan {
  const char *folder = variable("CHAOS_FOLDER"), *name = variable("CHAOS_NAME"), *acted = variable("CHAOS_ACTED");
  const char *call = variable("CHAOS_AT"), *deed = variable("CHAOS_DO");
  const char* awaited = variable("CHAOS_WAIT_FOR");
  const bool here = is_here();
  const long at = call && std::strchr(call, ' ') ? std::atol(std::strchr(call, ' ')) : 0;
  const long step_ms = number("CHAOS_STEP_MS", 0), jump = number("CHAOS_CLOCK", 0), relay = number("CHAOS_RELAY", 0);
  std::atomic<long> room = number("CHAOS_BYTES", -1), calls = 0, clock_calls = 0;
};
Plan& plan() {
  static Plan all;
  return all;
}

/// The function of the C library that the function of this file stands for.
template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(name)                                   \
  ([] {                                              \
    static auto* const found = real(&::name, #name); \
    return found;                                    \
  }())

bool counts(const char* path) {
  const Plan& p = plan();
  return p.folder && std::strncmp(path, p.folder, std::strlen(p.folder)) == 0 && (!p.name || std::strstr(path, p.name));
}
bool counts(int descriptor) {
  char link[64], path[4096];
  if (!plan().folder) return false;
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return counts(path);
}

/// Makes the file CHAOS_ACTED. Returns whether it is new.
bool note() {
  const Plan& p = plan();
  const int file = p.acted ? ::open(p.acted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  if (file >= 0) ::close(file);
  return file >= 0;
}

/// Counts a call on a file that counts. Returns the error with which it fails; 0 if it goes on.
int strike(const char* kind) {
  Plan& p = plan();
  if (!p.here || !p.deed || !p.call || std::strncmp(p.call, kind, std::strlen(kind)) != 0 || ++p.calls != p.at)
    return 0;
  int value = 0;
  char whom[16] = "";
  if (std::sscanf(p.deed, "fail %d", &value) == 1) return note() ? value : 0;
  if (std::sscanf(p.deed, "signal %d %15s", &value, whom) == 2 && note())
    ::kill(std::strcmp(whom, "parent") == 0 ? ::getppid() : ::getpid(), value);
  return 0;
}

/// How many of `bytes` the disk takes; -1 with errno if it is full, or if this write is to fail.
ssize_t taken(size_t bytes) {
  Plan& p = plan();
  if (const int error = strike("write")) {
    errno = error;
    return -1;
  }
  if (!p.here || p.room < 0 || bytes == 0) return static_cast<ssize_t>(bytes);
  const long left = p.room, part = static_cast<long>(bytes) < left ? static_cast<long>(bytes) : left;
  p.room -= part;
  if (part > 0) return part;
  note();
  errno = ENOSPC;
  return -1;
}

int synchronise(int descriptor, int (*function)(int)) {
  const int error = counts(descriptor) ? strike("fsync") : 0;
  if (error == 0) return function(descriptor);
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const ssize_t part = counts(descriptor) ? taken(size) : static_cast<ssize_t>(size);
  return part < 0 ? -1 : REAL(write)(descriptor, bytes, static_cast<size_t>(part));
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  const ssize_t part = counts(descriptor) ? taken(size) : static_cast<ssize_t>(size);
  return part < 0 ? -1 : REAL(pwrite)(descriptor, bytes, static_cast<size_t>(part), offset);
}

// The C library writes a log's line inside fflush, so this counts as a write.
int fflush(FILE* file) {
  if (file && counts(::fileno(file))) {
    ::usleep(static_cast<useconds_t>(plan().step_ms) * 1000);
    const auto pending = static_cast<ssize_t>(::__fpending(file));
    const ssize_t part = taken(static_cast<size_t>(pending));
    if (part < 0 || (part < pending && taken(1) < 0)) return EOF;
  }
  return REAL(fflush)(file);
}

int fsync(int descriptor) { return synchronise(descriptor, REAL(fsync)); }
int fdatasync(int descriptor) { return synchronise(descriptor, REAL(fdatasync)); }

int rename(const char* from, const char* to) noexcept {
  const int error = counts(to) ? strike("rename") : 0;
  if (error == 0) return REAL(rename)(from, to);
  errno = error;
  return -1;
}

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const int result = REAL(clock_gettime)(clock, time);
  Plan& p = plan();
  if (p.jump == 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  note();
  time->tv_sec += ++p.clock_calls % 2 == 0 ? -p.jump : p.jump;
  return result;
}

int gettimeofday(struct timeval* time, void* /*zone*/) noexcept {
  timespec now = {};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t* result) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

int connect(int descriptor, const struct sockaddr* address, socklen_t length) {
  const Plan& p = plan();
  for (int ms = 0; p.awaited && address->sa_family == AF_INET && ms < 8000 && ::access(p.awaited, F_OK) != 0; ++ms)
    ::usleep(1000);
  if (p.relay == 0 || !p.here || address->sa_family != AF_INET) return REAL(connect)(descriptor, address, length);
  sockaddr_in relay = *reinterpret_cast<const sockaddr_in*>(address);
  const in_port_t asked = relay.sin_port;
  relay.sin_port = htons(static_cast<uint16_t>(p.relay));
  if (REAL(connect)(descriptor, reinterpret_cast<sockaddr*>(&relay), sizeof relay) != 0) {
    pollfd entry = {descriptor, POLLOUT, 0};
    if (errno != EINPROGRESS || ::poll(&entry, 1, 2000) != 1) return -1;
  }
  if (::send(descriptor, &asked, sizeof asked, MSG_NOSIGNAL) == sizeof asked) return 0;
  errno = ECONNREFUSED;
  return -1;
}

}  // extern "C"
