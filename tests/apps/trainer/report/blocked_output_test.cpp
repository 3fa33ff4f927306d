#include <csignal>
#include <optional>
#include <thread>

#include "tests/apps/train_lenet.h"
#include "tests/support/pipe.h"

namespace tern {
namespace {

using Arguments = std::vector<std::string>;

/// Runs the program alone, as threads and as processes, while nobody reads its output.
class TrainLenetOutput : public TrainLenet {
 protected:
  static std::vector<Arguments> forms() {
    return {{}, {"--workers", "2", "--transport", "inproc"}, {"--workers", "2", "--transport", "socket"}};
  }
  Arguments with_log(Arguments form, const Arguments& more) const {
    form.insert(form.end(), {"--log", place("log")});
    form.insert(form.end(), more.begin(), more.end());
    return words(form);
  }
  int64_t steps() const {
    return std::filesystem::exists(place("log")) ? static_cast<int64_t>(losses(place("log")).size()) : 0;
  }
  bool done() const {
    const auto events = read_log(place("log"));
    return !events.empty() && events.back()["event"] == "done";
  }
  void wait_for_step(int64_t step) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!std::filesystem::exists(place("log")) ||
           read_file(place("log")).find("\"step\":" + std::to_string(step) + ",") == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "never came to step " << step;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

TEST_F(TrainLenetOutput, BlockedIsWaitedForAtTheEndAlone) {
  for (const Arguments& form : forms()) {
    SCOPED_TRACE(testing::PrintToString(form));
    std::filesystem::remove(place("log"));
    const test::Pipe out, err;
    out.fill();
    err.fill();
    Process program(with_log(form, {"--epochs", "2", "--grace", "1"}),
                    {.out = out.write_end(), .err = err.write_end()});
    ASSERT_TRUE(program.ends_within(std::chrono::seconds(100)));
    EXPECT_EQ(program.wait().code, 0);
    EXPECT_TRUE(done());
    EXPECT_EQ(steps(), 24);
  }
}

TEST_F(TrainLenetOutput, BlockedIsToldOfOnStderr) {
  for (const Arguments& form : forms()) {
    SCOPED_TRACE(testing::PrintToString(form));
    const test::Pipe out;
    out.fill();
    Process program(with_log(form, {"--iterations", "2", "--grace", "0.5"}), {.out = out.write_end()});
    ASSERT_TRUE(program.ends_within(std::chrono::seconds(100)));
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(" lines of stdout were not written: its reader took nothing\n"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

// A slow reader gets the whole output, including the last line.
TEST_F(TrainLenetOutput, OfASlowReaderIsWhole) {
  for (const Arguments& form : forms()) {
    SCOPED_TRACE(testing::PrintToString(form));
    std::filesystem::remove(place("log"));
    const test::Pipe out;
    const size_t filled = out.fill();
    Process program(with_log(form, {"--iterations", "2"}), {.out = out.write_end()});
    wait_for_step(2);
    std::string text;
    while (program.running()) text += out.read();
    text += out.read();
    EXPECT_EQ(program.wait().code, 0);
    for (const char* part : {"train_lenet: mnist (", "test accuracy ", "training      2 steps", "peak memory "})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text.substr(filled);
  }
}

TEST_F(TrainLenetOutput, BlockedKeepsNoSignalFromItsWork) {
  for (const Arguments& form : forms())
    for (const int signal : {SIGTERM, SIGINT}) {
      SCOPED_TRACE(testing::PrintToString(form));
      std::filesystem::remove(place("log"));
      std::filesystem::remove_all(place("run"));
      const test::Pipe out, err;
      out.fill();
      err.fill();
      Process program(with_log(form, {"--iterations", "1000000", "--checkpoint", place("run")}),
                      {.out = out.write_end(), .err = err.write_end()});
      wait_for_step(2);
      program.send(signal);
      ASSERT_TRUE(program.ends_within(std::chrono::seconds(30)));
      EXPECT_EQ(program.wait().code, 130);
      EXPECT_TRUE(std::filesystem::exists(place("run"))) << "a checkpoint was written";
    }
}

TEST_F(TrainLenetOutput, ClosedIsLostAndTrainingGoesOn) {
  for (const Arguments& form : forms()) {
    SCOPED_TRACE(testing::PrintToString(form));
    for (const bool from_the_start : {false, true}) {
      std::filesystem::remove(place("log"));
      Arguments command = with_log(form, {"--epochs", "3"});
      test::Pipe out, err;
      if (from_the_start) command.insert(command.begin(), {"/bin/sh", "-c", "exec \"$@\" >&- 2>&- <&-", "sh"});
      Process program(command, {.out = out.write_end(), .err = err.write_end()});
      if (!from_the_start) wait_for_step(2);
      out.close_read_end();
      err.close_read_end();
      ASSERT_TRUE(program.ends_within(std::chrono::seconds(100)));
      EXPECT_EQ(program.wait().code, 0);
      EXPECT_TRUE(done());
      EXPECT_EQ(steps(), 36);
    }
  }
}

TEST_F(TrainLenetOutput, PlainTextsMayBeCutShort) {
  for (const Arguments& flags :
       std::vector<Arguments>{{"--help"}, {"--print-config"}, {"--version"}, {"--codec", "help"}}) {
    SCOPED_TRACE(flags[0]);
    test::Pipe out;
    out.close_read_end();
    Process program(words(flags), {.out = out.write_end()});
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
  EXPECT_GT(run({"--help"}).out.size(), 5000);
}

TEST_F(TrainLenetOutput, ALossOfLinesOnAFullDiskIsToldOfOnStderr) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  Process program(words({"--iterations", "2"}), {.out = full});
  const Outcome outcome = program.wait();
  ::close(full);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "train_lenet: stdout cannot be written: No space left on device; lines of it are lost\n");
}

TEST_F(TrainLenetOutput, AFullDiskIsNoPlaceForAPlainText) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  Process program(words({"--help"}), {.out = full});
  const Outcome outcome = program.wait();
  ::close(full);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "train_lenet: stdout: cannot be written: No space left on device\n");
}

}  // namespace
}  // namespace tern
