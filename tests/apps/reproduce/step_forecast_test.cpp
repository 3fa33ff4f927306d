#include "tern/apps/reproduce/step_forecast.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tern/core/error.h"
#include "tern/networks/lenet.h"
#include "tests/support/message_of.h"

namespace tern::reproduce {
namespace {

constexpr double kFloats = 1'256'080;  ///< LeNet's parameters, in two messages

/// 100 steps of LeNet with two ranks.
Run run_of(std::vector<std::string> flags) {
  Run run = {.name = "timed", .program = "train_lenet", .flags = {"--data", "digits", "--workers", "2"}, .steps = 100};
  run.flags.insert(run.flags.end(), flags.begin(), flags.end());
  return run;
}

double milliseconds(const std::vector<std::string>& flags, const TimeShares& time, int workers, const LinkCost& link,
                    double step_bytes = 1e6) {
  const RunResult measured = {.seconds = time.total(), .time = time};
  return 1e3 * StepForecast(networks::lenet(), run_of(flags), measured, workers, step_bytes).seconds(link);
}
/// Of a step that computes for 10 ms, encodes for 2, waits for the other rank for 1, and decodes for 4.
double coded(const std::vector<std::string>& flags, int workers) {
  return milliseconds(flags, {1, 0.2, 0.1, 0.4}, workers, {});
}
/// Of a step that only computes, for 17 ms.
double computed(const std::vector<std::string>& flags, const LinkCost& link, double step_bytes = 1e6) {
  return milliseconds(flags, {.compute = 1.7}, 4, link, step_bytes);
}

TEST(StepForecast, OfTheSameRanksWithoutALinkIsTheMeasuredStep) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--codec", "ternary"},
                                                {"--codec", "bf16", "--exchange", "ring"},
                                                {"--exchange", "powersgd:rank=2"},
                                                {"--method", "sparseloco", "--local-steps", "10"},
                                                {"--method", "demo", "--optimizer", "sgd", "--lr", "0.001"},
                                                {"--method", "ist", "--local-steps", "10", "--codec", "qsgd:bits=4"}})
    EXPECT_NEAR(coded(flags, 2), 17, 1e-9) << flags[1];
}

TEST(StepForecast, DecodesTheMessagesOfAllRanksIfTheyGather) {
  EXPECT_NEAR(coded({"--codec", "ternary"}, 4), 21, 1e-9) << "four messages in place of two";
  EXPECT_NEAR(coded({"--codec", "none"}, 4), 17, 1e-9) << "a ring decodes the mean";
}

TEST(StepForecast, SendsTheBytesThatTheRunSent) {
  const double sent = 2 * 4 * kFloats * 3 / 4;  // around the ring
  const LinkCost link = {.hop = 0, .byte = 1e-8};
  EXPECT_NEAR(computed({"--codec", "none"}, link, sent), 17 + 1e-5 * sent, 1e-9);
  EXPECT_NEAR(computed({"--codec", "none"}, link, 2 * sent), 17 + 2e-5 * sent, 1e-9);
}

TEST(StepForecast, SendsWhatNoLoCoSent) {
  const LinkCost link = {.hop = 0, .byte = 1e-8};
  const auto with = [&](double sent) { return computed({"--method", "noloco", "--local-steps", "5"}, link, sent); };
  EXPECT_NEAR(with(2e6) - with(1e6), 1e-5 * 1e6, 1e-6);
}

// Rank 0 receives the codes of three ranks, 2 bits an element, and sends their sums to them, 4 bits an element.
TEST(StepForecast, KnowsThatTheServerSendsMoreThanTheOtherRanks) {
  const LinkCost link = {.hop = 0, .byte = 1e-8};
  const double received = 3 * kFloats / 4, sent = 3 * kFloats / 2;
  EXPECT_NEAR(computed({"--codec", "ternary", "--exchange", "server"}, link, sent), 17 + 1e-5 * (received + sent),
              0.01);
}

TEST(StepForecast, CountsEachHopOfAMessage) {
  constexpr LinkCost kLate = {.hop = 0.02, .byte = 0};
  // The sum of the losses makes 1 hop. It travels during a backward pass, two thirds of a step.
  constexpr double kLosses = 20 - 17 * 2 / 3.0;
  // The long message goes around the ring in 6 hops. The short one goes directly, in 2.
  EXPECT_NEAR(computed({"--codec", "none"}, kLate), 17 + kLosses + 160, 1e-9);
  EXPECT_NEAR(computed({"--method", "local-sgd", "--local-steps", "10"}, kLate), 17 + (kLosses + 160) / 10, 1e-9);
  EXPECT_NEAR(computed({"--codec", "ternary"}, kLate), 17 + kLosses + 40, 1e-9) << "1 hop for each message";
  EXPECT_NEAR(computed({"--method", "noloco", "--local-steps", "5"}, kLate), 17 + (kLosses + 20) / 5, 1e-9);
}

TEST(StepForecast, RefusesARunWithWrongFlags) {
  EXPECT_EQ(message_of<InputError>([] { coded({"--codec", "ternery"}, 2); }).substr(0, 9), "--codec: ");
}

}  // namespace
}  // namespace tern::reproduce
