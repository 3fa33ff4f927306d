#include "tern/apps/trainer/interrupt.h"

#include <unistd.h>

#include <thread>

namespace tern {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  noted = 1;  // last: who sees it may install handlers anew
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// A thread that does nothing but run handlers, as long as the process lives.
void start_listening() {
  [[maybe_unused]] static const bool started = [] {
    std::thread([] {
      const sigset_t set = interrupts();
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      while (true) ::pause();
    }).detach();
    return true;
  }();
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted = 0;
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_interrupt_);
  sigaction(SIGTERM, &action, &previous_terminate_);
  start_listening();  // last: a signal that waited would end the process before there are handlers
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

bool InterruptGuard::interrupted() { return noted != 0; }

}  // namespace tern
