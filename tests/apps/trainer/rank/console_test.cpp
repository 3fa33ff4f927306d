#include "tern/trainer/rank/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

#include "tests/support/pipe.h"
#include "tests/support/terminal.h"

namespace tern {
namespace {

using namespace trainer;

using Seconds = std::chrono::duration<double>;

TEST(LineWriter, WritesAtOnceWhatTheReaderTakes) {
  const test::Pipe pipe;
  LineWriter writer(pipe.write_end());
  writer.print("one");
  writer.show("\rtwo");
  writer.print("\rthree");
  EXPECT_FALSE(writer.pending());
  EXPECT_EQ(writer.descriptor(), -1);
  EXPECT_EQ(pipe.read(), "one\n\rtwo\rthree\n");
}

TEST(LineWriter, KeepsLinesForASlowReader) {
  const test::Pipe pipe;
  const size_t filled = pipe.fill();
  LineWriter writer(pipe.write_end());
  writer.print("one");
  writer.print("two");
  EXPECT_TRUE(writer.pending());
  EXPECT_EQ(writer.descriptor(), pipe.write_end());
  EXPECT_EQ(pipe.read().size(), filled);
  writer.flush();
  EXPECT_FALSE(writer.pending());
  EXPECT_EQ(pipe.read(), "one\ntwo\n");
}

TEST(LineWriter, LeavesTheFlagsOfASharedDescriptorAlone) {
  const test::Pipe pipe;
  const int before = ::fcntl(pipe.write_end(), F_GETFL);
  LineWriter writer(pipe.write_end());
  writer.print("one");
  EXPECT_EQ(::fcntl(pipe.write_end(), F_GETFL), before);
}

TEST(LineWriter, DropsTheOldestLinesAndSaysHowMany) {
  const test::Pipe pipe;
  const size_t filled = pipe.fill();
  LineWriter writer(pipe.write_end());
  constexpr int kLines = 5000, kWidth = 1024;  // five times as much as the writer keeps
  for (int i = 0; i < kLines; ++i) writer.print(std::to_string(i) + std::string(kWidth - 5, '.'));
  EXPECT_EQ(pipe.read().size(), filled);
  std::string text;
  while (writer.pending()) {
    writer.flush();
    text += pipe.read();
  }
  ASSERT_TRUE(text.starts_with("(")) << text.substr(0, 80);
  const std::string first_line = text.substr(0, text.find('\n'));
  EXPECT_NE(first_line.find(" lines dropped: the reader did not keep up)"), std::string::npos) << first_line;
  std::string digits = first_line.substr(1, first_line.find(' '));
  std::erase(digits, ',');
  const int dropped = std::atoi(digits.c_str());
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + kLines - dropped);
  EXPECT_TRUE(text.substr(first_line.size() + 1).starts_with(std::to_string(dropped) + ".")) << first_line;
  EXPECT_GT(kLines - dropped, 900) << "1 MiB is kept";
  EXPECT_LT(kLines - dropped, 1100);
}

TEST(LineWriter, ALiveTextReplacesTheOneBefore) {
  const test::Pipe pipe;
  const size_t filled = pipe.fill();
  LineWriter writer(pipe.write_end());
  writer.print("line");
  for (int i = 0; i < 1000; ++i) writer.show("\rlive " + std::to_string(i));
  EXPECT_EQ(pipe.read().size(), filled);
  writer.flush();
  EXPECT_EQ(pipe.read(), "line\n\rlive 999");
}

TEST(LineWriter, DoesNotWaitForATerminalThatIsStopped) {
  const test::Terminal terminal;
  LineWriter writer(terminal.program_end());
  EXPECT_TRUE(writer.is_terminal());
  writer.print("one");
  EXPECT_EQ(terminal.read(), "one\r\n");
  ASSERT_EQ(::tcflow(terminal.program_end(), TCOOFF), 0);  // as Ctrl-S does
  writer.print("two");
  EXPECT_TRUE(writer.pending());
  ASSERT_EQ(::tcflow(terminal.program_end(), TCOON), 0);
  writer.flush();
  EXPECT_FALSE(writer.pending());
  EXPECT_EQ(terminal.read(), "two\r\n");
}

TEST(LineWriter, WithoutAReaderLinesAreLost) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  test::Pipe pipe;
  pipe.fill();
  LineWriter writer(pipe.write_end());
  writer.print("one");
  EXPECT_TRUE(writer.pending());
  pipe.close_read_end();
  writer.print("two");
  EXPECT_FALSE(writer.pending());
  EXPECT_EQ(writer.finish([] { return Seconds(3600); }), 0) << "nothing to wait for";
  LineWriter late(pipe.write_end());  // has no reader from the start
  late.print("three");
  EXPECT_FALSE(late.pending());
  std::signal(SIGPIPE, before);
}

TEST(LineWriter, FinishGivesUpWithAReaderWhoTakesNothing) {
  const test::Pipe pipe;
  pipe.fill();
  LineWriter writer(pipe.write_end());
  for (int i = 0; i < 7; ++i) writer.print("line");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(writer.finish([] { return Seconds(0.2); }), 7);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Seconds(0.2));
  pipe.read();
  EXPECT_EQ(writer.finish([] { return Seconds(0.2); }), 0);
  EXPECT_EQ(pipe.read(), "line\nline\nline\nline\nline\nline\nline\n");
}

}  // namespace
}  // namespace tern
