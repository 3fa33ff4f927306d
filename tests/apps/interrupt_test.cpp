#include "tern/apps/trainer/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tern {
namespace {

/// Whether this thread lets handlers of SIGINT and SIGTERM run on it.
bool takes_interrupts() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, SIGINT) == 0 || sigismember(&mask, SIGTERM) == 0;
}

TEST(InterruptGuard, NotesASignalOnNoThreadThatComputes) {
  const bool before = takes_interrupts();
  for (const int signal : {SIGINT, SIGTERM}) {
    const InterruptGuard guard;
    EXPECT_FALSE(takes_interrupts());
    std::thread([] { EXPECT_FALSE(takes_interrupts()); }).join();
    EXPECT_FALSE(guard.interrupted());
    ASSERT_EQ(::kill(::getpid(), signal), 0);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!guard.interrupted() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(guard.interrupted());
  }
  EXPECT_EQ(takes_interrupts(), before);
}

}  // namespace
}  // namespace tern
