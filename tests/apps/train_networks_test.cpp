#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tern/core/safetensors.h"
#include "tests/support/log.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

class TrainNetworks : public testing::Test {
 protected:
  Outcome run(const char* program, std::vector<std::string> words) const {
    words.insert(words.begin(), built_program(program));
    return run_program(words);
  }
  /// Trains for two steps, expects success, and returns the log.
  std::vector<nlohmann::json> train(const char* program, std::vector<std::string> more) const {
    const std::string log = (folder_.path() / "log").string();
    more.insert(more.end(), {"--iterations", "2", "--log", log, "--quiet", "--threads", "1"});
    const Outcome outcome = run(program, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(log);
  }
  int64_t parameters(const char* program, const std::vector<std::string>& more) const {
    return train(program, more).at(0)["parameters"].get<int64_t>();
  }

  TemporaryFolder folder_;
};

TEST_F(TrainNetworks, TrainOnShapesWithNoFileSlow) {
  EXPECT_EQ(parameters("train_cifarnet", {"--batch-size", "4"}), 1'068'298);
  EXPECT_EQ(parameters("train_resnet", {"--batch-size", "4"}), 269'722);
  EXPECT_EQ(parameters("train_resnet", {"--batch-size", "4", "--shortcut", "B", "--stem", "imagenet"}), 274'394);
}

TEST_F(TrainNetworks, EvaluateWithinTheMemoryOfATrainingStepSlow) {
  const auto peak = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--batch-size", "32"};
    flags.insert(flags.end(), more.begin(), more.end());
    return train("train_resnet", flags).back()["peak_memory"].get<double>();
  };
  const double least = peak({"--eval-batch-size", "8"});
  EXPECT_LT(peak({}), 1.05 * least);
  EXPECT_GT(peak({"--eval-batch-size", "250"}), 1.2 * least);
}

// Half of the whitening filters are the negatives of the other half, and none of them trains. A file without them
// leaves them as they are.
TEST_F(TrainNetworks, AirbenchWhitensItsImagesSlow) {
  const std::string whole = (folder_.path() / "whole").string(), part = (folder_.path() / "part").string();
  EXPECT_EQ(parameters("train_airbench", {"--batch-size", "4", "--tta", "none", "--save", whole}), 1'971'352);
  StateDict rest;
  for (const auto& [name, tensor] : read_safetensors(whole).tensors)
    if (name != "whiten.weight") rest.add(name, tensor);
  write_safetensors(part, rest);
  const std::string again = (folder_.path() / "again").string();
  train("train_airbench", {"--batch-size", "4", "--tta", "none", "--init", part, "--init-partial", "--save", again});
  const auto filters = read_safetensors(whole).tensors.at("whiten.weight").to_vector<float>();
  for (size_t i = 0; i < filters.size() / 2; ++i) EXPECT_EQ(filters[i], -filters[filters.size() / 2 + i]);
  EXPECT_EQ(read_safetensors(again).tensors.at("whiten.weight").to_vector<float>(), filters);
}

TEST_F(TrainNetworks, AlexNetTrainsOnLargeShapesSlow) {
  EXPECT_EQ(parameters("train_alexnet", {"--batch-size", "2"}), 56'910'570);
}

TEST_F(TrainNetworks, GoogLeNetTrainsOnLargeShapesSlow) {
  EXPECT_EQ(parameters("train_googlenet", {"--batch-size", "2"}), 5'610'154);
  EXPECT_EQ(parameters("train_googlenet", {"--batch-size", "2", "--variant", "bn-inception"}), 10'270'474);
}

TEST_F(TrainNetworks, BnInceptionHasNoDropout) {
  const auto printed = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--variant", "bn-inception", "--print-config"});
    return run("train_googlenet", words).out;
  };
  EXPECT_NE(printed({}).find("\ndropout=\"0\"\n"), std::string::npos) << printed({});
  EXPECT_NE(printed({"--dropout", "0.2"}).find("\ndropout=\"0.2\"\n"), std::string::npos);
}

TEST_F(TrainNetworks, TakeTheirPapersSettings) {
  const auto printed = [&](const char* program) { return run(program, {"--print-config"}).out; };
  for (const char* line : {"\niterations=300000\n", "\nbatch-size=128\n", "\noptimizer=\"adam\"\n", "\nlr=0.0002\n",
                           "\nweight-decay=0.004\n", "\nema-decay=0.9999\n"})
    EXPECT_NE(printed("train_cifarnet").find(line), std::string::npos) << line;
  for (const char* line : {"\niterations=64000\n", "\nlr-schedule=\"step\"\n", "\nlr-steps=[0.5,0.75]\n", "\nlr=0.1\n",
                           "\nweight-decay=0.0001\n", "\ndepth=20\n"})
    EXPECT_NE(printed("train_resnet").find(line), std::string::npos) << line;
  for (const char* line : {"\nepochs=8\n", "\nbatch-size=2000\n", "\noptimizer=\"muon\"\n", "\nlr=0.24\n",
                           "\nmuon-iterations=3\n", "\ntta=\"crops\"\n"})
    EXPECT_NE(printed("train_airbench").find(line), std::string::npos) << line;
}

/// The rule is from He et al., section 4.2.
TEST_F(TrainNetworks, DepthOf110WarmsUp) {
  const auto printed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--print-config"};
    words.insert(words.end(), more.begin(), more.end());
    return run("train_resnet", words).out;
  };
  const auto expect = [](const std::string& config, const char* line) {
    EXPECT_NE(config.find(line), std::string::npos) << config;
  };
  expect(printed({}), "\nwarmup=0\n# warmup-lr=0\n");
  expect(printed({"--depth", "110"}), "\nwarmup=400\nwarmup-lr=0.01\n");
  expect(printed({"--depth", "110", "--warmup-lr", "0.02"}), "\nwarmup=400\nwarmup-lr=0.02\n");
  expect(printed({"--depth", "110", "--warmup", "0"}), "\nwarmup=0\n# warmup-lr=0\n");
}

TEST_F(TrainNetworks, EpochsOverruleTheirNumberOfIterations) {
  const Outcome printed = run("train_resnet", {"--epochs", "3", "--print-config"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_NE(printed.out.find("\nepochs=3\n# iterations=\n"), std::string::npos) << printed.out;
}

TEST_F(TrainNetworks, SayWhatDoesNotFit) {
  const auto refused = [&](const char* program, const std::vector<std::string>& words, const char* sentence) {
    const Outcome outcome = run(program, words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  };
  refused("train_resnet", {"--depth", "34"}, "ResNet: found depth 34, expected 18, 20, 32, 44, 50, 56, 110 or 152");
  refused("train_lenet", {"--data", "shapes"}, "LeNet: found images of 3x32x32, expected 1x28x28");
  refused("train_vgg", {"--depth", "34"}, "--depth: found '34', expected A|12|16|19");
  refused("train_vgg", {"--data", "digits"}, "VGG: found images of 28x28, expected 32x32 or larger");
  refused("train_googlenet", {"--data", "digits"}, "GoogLeNet: found images of 28x28, expected 32x32 or larger");
  refused("train_alexnet", {"--data", "shapes"}, "a crop of 224x224 does not fit into an image of 32x32");
  refused("train_resnet", {"--data", "cifar10"}, "--data cifar10: needs --data-dir DIR");
  refused("train_resnet", {"--data", "cifar10", "--data-dir", folder_.path().string()},
          "holds data_batch_1.bin, plain, .gz or .xz");
}

TEST_F(TrainNetworks, CifarNetLearnsShapesSlow) {
  const std::string log = (folder_.path() / "log").string();
  ASSERT_EQ(run("train_cifarnet", {"--iterations", "500", "--batch-size", "64", "--lr", "0.001", "--ema-decay", "0",
                                   "--log", log, "--quiet"})
                .code,
            0);
  EXPECT_GT(read_log(log).back()["accuracy"].get<double>(), 0.25);  // chance gives 0.1
}

}  // namespace
}  // namespace tern
