#include "tern/trainer/rank/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tern {
namespace {

using namespace trainer;

/// Returns true if handlers of interrupts may run on this thread.
bool takes_interrupts() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return std::ranges::any_of(kInterrupts, [&](int signal) { return sigismember(&mask, signal) == 0; });
}

TEST(InterruptGuard, NotesASignalOnNoThreadThatComputes) {
  const bool before = takes_interrupts();
  for (const int signal : kInterrupts) {
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

// nohup starts programs in this way.
TEST(InterruptGuard, LeavesAnIgnoredHangUpIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    const InterruptGuard guard;
    EXPECT_TRUE(ignores_hangup());
  }
  EXPECT_TRUE(ignores_hangup());
  ::signal(SIGHUP, before);
}

}  // namespace
}  // namespace tern
