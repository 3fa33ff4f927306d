#include "tern/trainer/rank/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace tern::trainer {
namespace {

// A handler may use them, because they have no lock.
std::atomic<bool> signalled = false;
std::atomic<int64_t> wishes = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

/// Records the signal. Further SIGHUP are only recorded too, because a closing terminal may send several.
void note(int) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  signalled = true;  // last, because a thread that sees it may install new handlers
}

void note_wish(int) { ++wishes; }

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kInterrupts) sigaddset(&set, signal);
  sigaddset(&set, SIGUSR1);
  return set;
}

/// Starts, once, a thread that only runs signal handlers until the process ends.
void start_listening() {
  [[maybe_unused]] static const bool started = [] {
    std::thread([] {
      const sigset_t set = handled();
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      while (true) ::pause();
    }).detach();
    return true;
  }();
}

}  // namespace

InterruptGuard::InterruptGuard() {
  signalled = false;
  const sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kInterrupts.size(); ++i) {
    sigaction(kInterrupts[i], nullptr, &previous_[i]);
    if (kInterrupts[i] != SIGHUP || !ignores_hangup()) sigaction(kInterrupts[i], &action, nullptr);
  }
  action.sa_handler = note_wish;
  sigaction(SIGUSR1, &action, &previous_wish_);
  start_listening();  // last, because a pending signal would end the process before the handlers exist
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kInterrupts.size(); ++i) sigaction(kInterrupts[i], &previous_[i], nullptr);
  sigaction(SIGUSR1, &previous_wish_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

bool ignores_hangup() {
  struct sigaction action = {};
  sigaction(SIGHUP, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

int64_t InterruptGuard::records_wanted() { return wishes; }

bool InterruptGuard::interrupted() { return signalled; }

}  // namespace tern::trainer
