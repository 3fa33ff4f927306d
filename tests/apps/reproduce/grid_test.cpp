#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern::reproduce {
namespace {

std::string value_of(const Run& run, const std::string& flag) {
  const auto found = std::ranges::find(run.flags, flag);
  return found == run.flags.end() ? "" : *std::next(found);
}
std::string column_of(const Run& run, const std::string& name) {
  return std::ranges::find(run.columns, name, &std::pair<std::string, std::string>::first)->second;
}
bool is_timed(const Run& run) { return value_of(run, "--eval-every") == "0"; }

TEST(Grid, TrainsEveryMethodByOneSchedule) {
  std::set<std::string> methods;
  std::multiset<std::string> timed;
  for (const auto& run : grid().make({.data = "digits"})->runs()) {
    EXPECT_EQ(run.program, "train_lenet");
    EXPECT_EQ(value_of(run, "--transport"), "inproc");
    if (is_timed(run)) {
      EXPECT_EQ(value_of(run, "--batch-size"), "32") << "two ranks with the batch of a worker";
      EXPECT_EQ(value_of(run, "--threads"), "1");
      if (value_of(run, "--link").empty()) timed.insert(column_of(run, "method"));
      continue;
    }
    EXPECT_EQ(value_of(run, "--batch-size"), "64");
    EXPECT_EQ(value_of(run, "--iterations"), "2000");
    EXPECT_EQ(value_of(run, "--workers"), "4");
    EXPECT_EQ(value_of(run, "--link"), "");
    methods.insert(column_of(run, "method") + " " + value_of(run, "--seed"));
  }
  EXPECT_EQ(methods.size(), 16u * 5u);
  EXPECT_EQ(timed.size(), 16u * 3u);
  EXPECT_EQ(timed.count("demo"), 3u) << "three turns of each";
}

TEST(Grid, GivesSeveralSeedsToMethodsWithConclusions) {
  std::multiset<std::string> methods;
  for (const auto& run : grid().make({.data = "shapes"})->runs()) {
    EXPECT_EQ(run.program, "train_airbench");
    if (!is_timed(run)) methods.insert(column_of(run, "method"));
  }
  for (const char* method : {"float", "bf16", "1bitsgd"}) EXPECT_EQ(methods.count(method), 3u) << method;
  EXPECT_EQ(methods.count("ternary"), 1u);
  EXPECT_EQ(methods.count("ist"), 0u) << "airbench94 has no hidden fully connected layer to cut";
}

/// The target is 98 % of the float ring's 99 %: 0.9702. All methods pass it in step 187.75, on the line from (100, 0.9)
/// to (200, 0.98). A step takes 10 ms without the link in the median turn. Ternary sends least, but it loses a point.
/// LeNet's gradients are two messages. The bf16 ring of four ranks makes 3 hops for each, and one to gather the means,
/// so 8 latencies in a step, and that of two ranks 4. SparseLoCo makes one hop for each in a round, so 0.2 in a step.
/// The sum of the losses makes 1 hop. It travels during the backward pass, two thirds of a step.
TEST(Grid, CountsBytesAndSecondsToTheTarget) {
  const auto experiment = grid().make({.data = "digits", .seeds = 2});
  Results results;
  for (const auto& run : experiment->runs()) {
    const std::string method = column_of(run, "method"), link = column_of(run, "link");
    if (method != "float" && method != "bf16" && method != "sparseloco" && method != "ternary") continue;
    const double bytes = method == "float" ? 2e6 : method == "bf16" ? 1e6 : method == "sparseloco" ? 1e3 : 10;
    RunResult& result = results[run.name];
    result.bytes_sent_payload = static_cast<int64_t>(bytes) * run.steps;
    if (is_timed(run)) {
      const double factor = run.name.ends_with("-turn-2") ? 0.5 : run.name.ends_with("-turn-3") ? 7 : 1;
      result.seconds = factor * (link.empty() ? 0.01 : 0.1) * static_cast<double>(run.steps);
      continue;
    }
    result.curve = {{.step = 100, .score = 0.9}, {.step = 200, .score = 0.98}};
    result.score = method == "ternary" ? 0.98 : 0.99;
  }
  const Report report = experiment->report(results);
  std::string text = report.text;
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }), text.end());
  for (const char* expected :
       {"| bf16 | `--codec bf16 --exchange ring` | 2 | 99.00 ± 0.00 | 2000 | 1 | 188 | 188 | 10 | 2.18 | 3.53 | "
        "17.1 | 152 | 49.5 | 185 |",
        "| SparseLoCo | `--method sparseloco --local-steps 10` | 2 | 99.00 ± 0.00 | 2 | 1000 | 188 | 0.188 | 10 | "
        "1.88 | 1.88 | 1.9 | 2.03 | 2.9 | 3.05 |",
        "| QSGD | `--codec qsgd:bits=4` | 0 | – | – | – | – | – | – | – | – | – | – | – | – |",
        "- **10mbit-20ms**: SparseLoCo, `--method sparseloco --local-steps 10`: 3.05 s (n = 2); the bf16 ring takes "
        "185 s, 60.6 times as long.",
        // A step of the bf16 ring: 10 ms, 1 MB at 12.5 MB/s, and 4 latencies; on the far link also one of the losses.
        "| bf16 | 100mbit | 90.4 | 100 | 1.11 |", "| bf16 | 10mbit-20ms | 904 | 100 | 0.11 |"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\nis not in\n" << text;
  for (const char* figure : {"bytes.svg", "time-10gbit.svg", "time-1gbit.svg", "time-100mbit.svg", "time-10mbit.svg",
                             "time-100mbit-20ms.svg", "time-10mbit-20ms.svg"})
    EXPECT_TRUE(report.figures.contains(figure)) << figure;
}

TEST(Grid, SaysWhatHasNotFinished) {
  const std::string text = grid().make({.data = "digits"})->report({}).text;
  EXPECT_NE(text.find("- **100mbit**: no finished and timed method reaches the target."), std::string::npos) << text;
}

TEST(Grid, ComparesNoBytesBeforeTheBf16RingHasRun) {
  const auto experiment = grid().make({.data = "digits"});
  Results results;
  for (const auto& run : experiment->runs())
    if (column_of(run, "method") == "ternary" && !is_timed(run))
      results[run.name] = {.score = 0.9, .bytes_sent_payload = 1000 * run.steps};
  std::string text = experiment->report(results).text;
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }), text.end());
  EXPECT_NE(text.find(" | 90.00 ± 0.00 | 2 | – | "), std::string::npos) << text;
}

TEST(Grid, RefusesWorkersThatDoNotShareTheBatch) {
  EXPECT_EQ(message_of<InputError>([] { grid().make({.data = "digits", .workers = {3}}); }),
            "--workers: found 3, expected a number from 2 that shares the batch of 64 equally");
}

}  // namespace
}  // namespace tern::reproduce
