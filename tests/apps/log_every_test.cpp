#include "tern/trainer/settings.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

/// Trains a narrow network on the CPU, and on a CUDA device if there is one.
class LogEvery : public TrainLenet {
 protected:
  static std::vector<std::string> devices() {
    return test::why_no_cuda().empty() ? std::vector<std::string>{"cpu", "cuda"} : std::vector<std::string>{"cpu"};
  }
  std::vector<std::string> words_on(const std::string& device, std::vector<std::string> more) const {
    more.insert(more.begin(), {built_program("train_mlp"), "--data", "mnist", "--data-dir", data_.string(), "--threads",
                               "1", "--hidden", "8", "--batch-size", "16", "--device", device, "--quiet"});
    if (device != "cpu") more.push_back("--deterministic");
    return more;
  }
  /// The steps, evaluations and notes of a run, without what depends on times and on messages.
  std::vector<nlohmann::json> events(const std::string& device, std::vector<std::string> more) const {
    const std::string log = place("train.jsonl");
    more.insert(more.end(), {"--log", log});
    const Outcome outcome = run_program(words_on(device, more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<nlohmann::json> found;
    for (auto& event : read_log(log)) {
      for (const char* key : {"seconds", "encode_seconds", "decode_seconds", "wait_seconds", "bytes_sent_overhead"})
        event.erase(key);
      if (event["event"] != "start" && event["event"] != "done") found.push_back(event);
    }
    return found;
  }
};

// Step 9 ends amid a group, because of the evaluation.
TEST_F(LogEvery, TheLogIsTheSameOnCpuAndCuda) {
  const std::vector<std::vector<std::string>> runs = {
      {"--histograms", "4"},
      {"--workers", "2"},
      {"--workers", "2", "--transport", "socket", "--codec", "ternary", "--check-every", "5"}};
  for (const std::string& device : devices())
    for (auto flags : runs) {
      SCOPED_TRACE(device + testing::PrintToString(flags));
      flags.insert(flags.end(), {"--iterations", "17", "--eval-every", "9", "--log-every", "1"});
      const auto expected = events(device, flags);
      for (const auto& event : expected)
        if (event["event"] == "step") {
          EXPECT_GT(event["gradient_norm"], 0) << event;
        }
      for (const char* steps : {"3", "8", "100"}) {
        flags.back() = steps;
        EXPECT_EQ(events(device, flags), expected) << steps;
      }
    }
}

// Between rounds the ranks have nothing to tell each other, except for an evaluation and at the end of an epoch.
TEST_F(LogEvery, RanksWithRoundsAddUpTheirLossesOnceARound) {
  const std::vector<std::vector<std::string>> methods = {{"--method", "local-sgd"},
                                                         {"--method", "sparseloco", "--accumulate", "2"},
                                                         {"--method", "noloco", "--plot", place("losses.svg")},
                                                         {"--method", "ist"}};
  for (auto flags : methods) {
    SCOPED_TRACE(testing::PrintToString(flags));
    flags.insert(flags.end(), {"--workers", "2", "--local-steps", "5", "--iterations", "20", "--eval-every", "12"});
    const auto found = events("cpu", flags);
    const auto log = read_log(place("train.jsonl"));
    const int epoch = log.front()["steps_per_epoch"];
    for (const auto& event : log) {
      if (event["event"] != "step") continue;
      const int step = event["step"];
      if (step % 5 == 0) {
        EXPECT_GT(event["bytes_sent_overhead"], 0) << event;
      } else if (step % 5 > 1 && step != 12 && step % epoch != 0) {  // IST's rounds begin with a message
        EXPECT_EQ(event["bytes_sent_overhead"], 0) << event;
        EXPECT_EQ(event["bytes_sent_payload"], 0) << event;
      }
    }
    flags.insert(flags.end(), {"--log-every", "1"});
    EXPECT_EQ(events("cpu", flags), found) << "with a sum in each step";
  }
}

TEST_F(LogEvery, GoesOnAfterACheckpointAmidAGroupOnCpuAndCuda) {
  for (const std::string& device : devices())
    for (const std::vector<std::string>& ranks : {std::vector<std::string>{}, {"--workers", "2"}}) {
      SCOPED_TRACE(device + testing::PrintToString(ranks));
      const auto with = [&](const std::string& log, std::vector<std::string> more) {
        more.insert(more.end(), {"--log", place(device + log), "--log-every", "8"});
        more.insert(more.end(), ranks.begin(), ranks.end());
        return words_on(device, more);
      };
      const std::string folder = place(join({device, " kept by ", ranks.size()}));
      EXPECT_EQ(run_program(with("whole", {"--iterations", "14"})).code, 0);
      EXPECT_EQ(run_program(with("parts", {"--iterations", "5", "--checkpoint", folder})).code, 0);
      EXPECT_EQ(losses(place(device + "parts")).size(), 5u);
      const auto rest = with("parts", {"--iterations", "14", "--checkpoint", folder, "--resume"});
      EXPECT_EQ(run_program(rest).code, 0);
      EXPECT_EQ(losses(place(device + "parts")), losses(place(device + "whole")));
    }
}

// The rate of step 5 breaks the model, so that the loss of step 6 is not finite. The checkpoint of step 7 must not have
// it. The steps before are in the log, unless other ranks would have to add to their losses.
TEST_F(LogEvery, NamesTheStepThatDivergedAndKeepsNothingOnCpuAndCuda) {
  for (const std::string& device : devices())
    for (const std::string ranks : {"1", "2"})
      for (const std::string every : {"1", "4", "8"}) {
        const std::string name = join({device, " ranks ", ranks, " every ", every});
        SCOPED_TRACE(name);
        std::vector<std::string> flags = {
            "--iterations",       "30",   "--lr-schedule", "step",         "--lr-steps",   "4",
            "--lr-factor",        "1e30", "--norm",        "none",         "--log",        place(name),
            "--log-every",        every,  "--save",        place("model"), "--checkpoint", place("kept"),
            "--checkpoint-every", "7"};
        if (ranks != "1") flags.insert(flags.end(), {"--workers", ranks});
        const Outcome outcome = run_program(words_on(device, flags));
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_NE(outcome.err.find("the loss is nan at step 6; the first value that is not finite is in the output"),
                  std::string::npos)
            << outcome.err;
        EXPECT_FALSE(std::filesystem::exists(place("model")));
        EXPECT_FALSE(std::filesystem::exists(place("kept/step-00000007.tern")));
        if (ranks == "1") {
          EXPECT_EQ(losses(place(name)).size(), 5u);
        }
      }
}

TEST_F(LogEvery, RanksStopTogetherAndGoOnOnCpuAndCuda) {
  const std::vector<std::vector<std::string>> groups = {{"--log-every", "3"},
                                                        {"--method", "local-sgd", "--local-steps", "5"}};
  for (const std::string& device : devices())
    for (const auto& group : groups) {
      SCOPED_TRACE(device + testing::PrintToString(group));
      const std::string run = device + group.front();
      const auto with = [&](const std::string& log, std::vector<std::string> more) {
        more.insert(more.end(), {"--workers", "2", "--iterations", "60", "--log", place(run + log), "--checkpoint",
                                 place(run + log + " kept")});
        more.insert(more.end(), group.begin(), group.end());
        return words_on(device, more);
      };
      EXPECT_EQ(run_program(with("whole", {})).code, 0);
      Process process(with("parts", {"--link", "rate=2mbit"}));
      wait_for_lines(place(run + "parts"), 4);
      process.send(SIGINT);
      const Outcome outcome = process.wait();
      EXPECT_EQ(outcome.code, 130) << outcome.err;
      const size_t done = losses(place(run + "parts")).size();
      EXPECT_LT(done, 60u);
      EXPECT_NE(outcome.err.find("interrupted after step " + std::to_string(done)), std::string::npos) << outcome.err;
      EXPECT_EQ(run_program(with("parts", {"--resume"})).code, 0);
      EXPECT_EQ(losses(place(run + "parts")), losses(place(run + "whole")));
    }
}

TEST(StepsOfASum, AreThoseOfARoundAtMostFifty) {
  EXPECT_EQ(steps_of_a_sum(TrainingMethod::data_parallel, 10), 1);
  EXPECT_EQ(steps_of_a_sum(TrainingMethod::sparseloco, 30), 30);
  EXPECT_EQ(steps_of_a_sum(TrainingMethod::diloco, 500), 50);
}

}  // namespace
}  // namespace tern
