#include "tern/trainer/rank/pulse.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace tern {
namespace {

using namespace trainer;

using Clock = std::chrono::steady_clock;

TEST(Pulse, ShowsTheLastBeatOfAnotherProcess) {
  const PulseMemory memory;
  EXPECT_EQ(memory.of(3).last(), Clock::time_point());
  const auto before = Clock::now();
  if (const pid_t child = ::fork(); child == 0) {
    PulseMemory(::dup(memory.descriptor())).of(3).beat();
    ::_exit(0);
  } else {
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_GE(memory.of(3).last(), before);
  EXPECT_LE(memory.of(3).last(), Clock::now());
  EXPECT_EQ(memory.of(2).last(), Clock::time_point());
}

TEST(Pulse, WorkCountsAsProgressUntilItsEnd) {
  const PulseMemory memory;
  const Pulse pulse = memory.of(0);
  std::optional<Pulse::Work> work(pulse);
  const auto during = Clock::now();
  EXPECT_GE(pulse.last(), during);
  EXPECT_GE(pulse.last(), Clock::now() - std::chrono::seconds(1));
  work.reset();
  const auto after = pulse.last();
  EXPECT_GE(after, during);
  EXPECT_EQ(pulse.last(), after);
}

TEST(Pulse, OfNobodyNotesNothing) {
  const Pulse pulse;
  pulse.beat();
  const Pulse::Work work(pulse);
  EXPECT_EQ(pulse.last(), Clock::time_point());
}

}  // namespace
}  // namespace tern
