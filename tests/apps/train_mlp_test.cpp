#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

class TrainMlp : public testing::Test {
 protected:
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), built_program("train_mlp"));
    return run_program(words);
  }
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(TrainMlp, BuildsAsManyHiddenNeuronsAsItIsTold) {
  const auto parameters = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--iterations", "0", "--log", place("log"), "--quiet", "--threads", "1"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(place("log")).front()["parameters"].get<int64_t>();
  };
  EXPECT_EQ(parameters({}), 784 * 512 + 2 * 512 + 512 * 10);
  EXPECT_EQ(parameters({"--layers", "3", "--hidden", "9"}), 784 * 9 + 9 * 9 + 9 * 10 + 2 * 2 * 9);
  EXPECT_EQ(parameters({"--norm", "hidden"}), 784 * 512 + 2 * 512 + 512 * 10 + 10);
  EXPECT_EQ(parameters({"--hidden", "7", "--norm", "none"}), 784 * 7 + 7 + 7 * 10 + 10);
  EXPECT_EQ(parameters({"--hidden", "7", "--data", "tones"}), 4096 * 7 + 2 * 7 + 7 * 35);
}

TEST_F(TrainMlp, GivesAGroupARuleOfItsOwn) {
  for (const char* rule : {"rule=adam,lr=0.001", "rule=momentum"}) {
    const Outcome outcome =
        run({"--hidden", "8", "--iterations", "2", "--threads", "1", "--group", std::string("*.bias:") + rule});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

TEST_F(TrainMlp, SaysThatARunEndsBeforeItsFirstExchange) {
  const auto out = [&](const char* steps, const char* fragments) {
    const Outcome outcome =
        run_program({built_program("train_mlp"), "--hidden", "8", "--threads", "1", "--workers", "2", "--method",
                     "diloco", "--local-steps", "3", "--fragments", fragments, "--iterations", steps});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_NE(out("2", "1").find("note: the run has 2 steps, and the first exchange comes after --local-steps 3."),
            std::string::npos);
  EXPECT_EQ(out("3", "1").find("note: the run"), std::string::npos);
  EXPECT_EQ(out("2", "2").find("note: the run"), std::string::npos) << "a fragment is exchanged before";
}

// The limit leaves no room for the stacks of all threads.
TEST_F(TrainMlp, EndsWithASentenceIfItGetsNoThread) {
  if (*TERN_SANITIZE != '\0') GTEST_SKIP() << "sanitizers reserve more address space than the limit of this test";
  for (const char* flags : {"--workers 64 --batch-size 64", "--loader-threads 64"}) {
    const Outcome outcome = run_program(
        {"/bin/sh", "-c",
         "ulimit -v 400000; exec " + built_program("train_mlp") + " --hidden 8 --threads 1 --iterations 2 " + flags});
    EXPECT_EQ(outcome.code, 2) << flags << ": " << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

// The program computes the statistics before it writes the checkpoint. This takes longer than --grace, and a step takes
// a small part of --grace, with sanitizers too.
TEST_F(TrainMlp, WritesItsCheckpointAfterALongCalibration) {
  Process job({built_program("train_mlp"), "--workers", "2", "--transport", "socket", "--batch-size", "16",
               "--calibrate-batches", "2500", "--grace", "1", "--checkpoint", place("run"), "--log", place("log"),
               "--quiet", "--threads", "1"});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!std::filesystem::exists(place("log")) || read_file(place("log")).find("\"step\":3,") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  job.send(SIGTERM);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(outcome.err.find("killing it"), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(place("run"))) << outcome.err;
}

TEST_F(TrainMlp, IndependentSubnetsAreEvaluatedByCalibratedOrBatchStatisticsSlow) {
  const auto accuracy = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--workers", "2", "--method", "ist", "--local-steps", "5", "--iterations", "60",
                             "--hidden", "64", "--lr", "0.1", "--log", place("log"), "--quiet", "--threads", "1"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(place("log")).back()["accuracy"].get<double>();
  };
  const double calibrated = accuracy({}), batch = accuracy({"--ist-eval", "batch"});
  EXPECT_GT(calibrated, 0.5);
  EXPECT_GT(batch, 0.3);
  EXPECT_NE(calibrated, batch);
  // Batches of 1333 leave one of each rank's 4000 test images over. A single image has no statistics of its own.
  EXPECT_GT(accuracy({"--ist-eval", "batch", "--eval-batch-size", "1333"}), 0.3);
  const Outcome alone = run({"--workers", "2", "--method", "ist", "--ist-eval", "batch", "--eval-batch-size", "1"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("--eval-batch-size: found 1, expected 2 or more with --ist-eval batch"), std::string::npos)
      << alone.err;
  EXPECT_NE(accuracy({"--calibrate-batches", "1"}), calibrated);
  EXPECT_EQ(run({"--workers", "2", "--method", "ist", "--norm", "none", "--ist-scope", "filters"}).code, 2);
}

TEST_F(TrainMlp, SaysWhatSubnetsWithoutNormalizationLose) {
  const auto says = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"--hidden", "8", "--iterations", "1", "--threads", "1", "--workers", "2"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out.find("which has no batch or layer normalisation") != std::string::npos &&
           outcome.out.find("(IST, section 3.3)") != std::string::npos;
  };
  EXPECT_TRUE(says({"--method", "ist", "--norm", "none"}));
  EXPECT_FALSE(says({"--method", "ist"}));
  EXPECT_FALSE(says({"--method", "local-sgd", "--norm", "none"}));
}

// Normalisation of other layers, such as VGG's convolutions, does not count.
TEST_F(TrainMlp, SaysItOfLayersOfOtherNetworksSlow) {
  const std::vector<std::string> cifarnet = {"--data", "shapes", "--ema-decay", "0"},
                                 vgg = {"--data", "shapes", "--depth", "A", "--stem", "cifar"};
  for (const auto& [program, flags, layer] : {std::tuple{"train_lenet", std::vector<std::string>{}, "fc1"},
                                              {"train_cifarnet", cifarnet, "fc1"},
                                              {"train_vgg", vgg, "classifier.0"}}) {
    std::vector<std::string> words = {built_program(program)};
    words.insert(words.end(), flags.begin(), flags.end());
    for (const auto& [flag, value] : {std::pair{"--iterations", "1"},
                                      {"--batch-size", "8"},
                                      {"--eval-batch-size", "1000"},
                                      {"--threads", "1"},
                                      {"--workers", "2"},
                                      {"--method", "ist"}})
      words.insert(words.end(), {flag, value});
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string note =
        std::string("--method ist cuts '") + layer + "', which has no batch or layer normalisation";
    EXPECT_NE(outcome.out.find(note), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("(IST, section 3.3)"), std::string::npos) << outcome.out;
  }
}

TEST_F(TrainMlp, AveragesOfGradientsAreEvaluatedByCalibratedStatisticsWhereAsked) {
  const auto loss = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--workers", "2", "--iterations", "20", "--hidden", "64", "--lr", "0.1", "--log",
                             place("log"), "--quiet", "--threads", "1"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(place("log")).back()["loss"].get<double>();
  };
  // After so few steps, the running statistics are far behind the parameters.
  const double running = loss({}), calibrated = loss({"--calibrate-batches", "20"});
  EXPECT_LT(calibrated, 0.9 * running);
  const Outcome averaged = run({"--workers", "2", "--calibrate-batches", "20", "--ema-decay", "0.9"});
  EXPECT_EQ(averaged.code, 2);
  EXPECT_NE(averaged.err.find("--calibrate-batches and --ema-decay contradict each other"), std::string::npos);
}

// Every evaluation is a multiple of --eval-every. The first one with the score, or the last step, ends the run.
TEST_F(TrainMlp, EndsAtTheFirstEvaluationThatReachesTheScoreSlow) {
  struct Way {
    std::string target;
    std::vector<std::string> flags;
  };
  for (const auto& [target, flags] :
       {Way{"60", {}}, Way{"60", {"--workers", "2", "--method", "ist", "--local-steps", "8"}}, Way{"100", {}}}) {
    std::vector<std::string> words = {"--hidden",
                                      "64",
                                      "--lr",
                                      "0.1",
                                      "--iterations",
                                      "46",
                                      "--eval-every",
                                      "4",
                                      "--quiet",
                                      "--threads",
                                      "1",
                                      "--log",
                                      place("log"),
                                      "--target-score",
                                      target,
                                      "--checkpoint",
                                      place("run" + std::to_string(flags.size()) + target)};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = run(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto evaluations = read_log(place("log"), "eval");
    const nlohmann::json last = read_log(place("log")).back();
    const bool reached = target == "60";
    EXPECT_EQ(last["reached_target"], reached);
    EXPECT_EQ(last["steps"], reached ? evaluations.back()["step"] : nlohmann::json(46));
    for (size_t i = 0; i < evaluations.size(); ++i) {
      const bool ends = i + 1 == evaluations.size();
      if (reached) {
        EXPECT_EQ(evaluations[i]["accuracy"] >= 0.6, ends) << evaluations[i];
      }
      EXPECT_EQ(evaluations[i]["step"], ends && !reached ? 46 : 4 * (i + 1));
    }
    // A run that reached its target does not go on.
    words.push_back("--resume");
    ASSERT_EQ(run(words).code, 0);
  }
}

TEST_F(TrainMlp, RefusesCountsThatAreNone) {
  for (const auto& [value, message] :
       {std::pair{"0", "--hidden: found 0, expected 1 or more"}, {"many", "--hidden: found 'many', expected"}}) {
    const Outcome outcome = run({"--hidden", value});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
}

TEST_F(TrainMlp, PrintsItsCountsAsAConfiguration) {
  const Outcome printed = run({"--hidden", "33", "--print-config"});
  EXPECT_NE(printed.out.find("\nhidden=33\n"), std::string::npos) << printed.out;
  write_file(place("config"), printed.out);
  EXPECT_EQ(run({"--config", place("config"), "--print-config"}).out, printed.out);
}

TEST_F(TrainMlp, GoesOnOnlyWithTheNetworkThatItBegan) {
  const std::vector<std::string> begin = {"--checkpoint",      place("run"), "--quiet", "--threads", "1",
                                          "--eval-batch-size", "2000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), begin.begin(), begin.end());
    return run(more);
  };
  ASSERT_EQ(with({"--hidden", "8", "--iterations", "2"}).code, 0);
  const Outcome other = with({"--hidden", "9", "--iterations", "3", "--resume"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("--hidden was 8 and is 9 now"), std::string::npos) << other.err;
  const Outcome lenet =
      run_program({built_program("train_lenet"), "--checkpoint", place("run"), "--iterations", "3", "--resume"});
  EXPECT_NE(lenet.err.find("application was train_mlp and is train_lenet now"), std::string::npos) << lenet.err;
  EXPECT_EQ(with({"--hidden", "8", "--iterations", "3", "--resume"}).code, 0);
}

}  // namespace
}  // namespace tern
