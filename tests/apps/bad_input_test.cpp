#include <fstream>
#include <regex>

#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

struct BadInput {
  std::vector<std::string> words;  ///< "@" stands for the test's folder
  std::string sentence;            ///< what stderr must say, a part of it
};

class TrainLenetBadInput : public TrainLenet {
 protected:
  void expect_refused(const BadInput& bad) const {
    std::vector<std::string> more;
    for (const auto& word : bad.words) more.push_back(word.starts_with("@") ? place(word.substr(1)) : word);
    const Outcome outcome = run(more);
    SCOPED_TRACE(bad.sentence);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("train_lenet: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(bad.sentence), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "more than one line: " << outcome.err;
  }
};

TEST_F(TrainLenetBadInput, FlagsOutOfRange) {
  const BadInput table[] = {
      {{"--lr", "-1"}, "--lr: found -1, expected a finite number above 0"},
      {{"--lr", "nan"}, "--lr: found nan, expected a finite number above 0"},
      {{"--lr", "inf"}, "--lr: found inf"},
      {{"--lr", "fast"}, "--lr: found 'fast', expected a number"},
      {{"--lr", "0.1x"}, "--lr: found '0.1x', expected a number"},
      {{"--batch-size", "0"}, "--batch-size: found 0, expected 1 or more"},
      {{"--batch-size", "2.5"}, "--batch-size: found '2.5', expected a whole number"},
      {{"--batch-size", "201"}, "--batch-size: found 201, expected 200 or fewer"},
      {{"--eval-batch-size", "0"}, "--eval-batch-size: found 0"},
      {{"--epochs", "-1"}, "--epochs: found -1"},
      {{"--iterations", "99999999999999999999"}, "--iterations: found '99999999999999999999'"},
      {{"--momentum", "1"}, "--momentum: found 1, expected a finite number from 0 to below 1"},
      {{"--weight-decay", "-0.1"}, "--weight-decay: found -0.1"},
      {{"--ema-decay", "1"}, "--ema-decay: found 1"},
      {{"--label-smoothing", "nan"}, "--label-smoothing: found nan"},
      {{"--clip-norm", "-1"}, "--clip-norm: found -1"},
      {{"--seed", "-1"}, "--seed: found -1"},
      {{"--threads", "-2"}, "--threads: found -2"},
      {{"--loader-threads", "-1"}, "--loader-threads: found -1"},
      {{"--optimizer", "lion"}, "--optimizer: found 'lion', expected sgd|momentum|nesterov|adam|adamw"},
      {{"--precision", "fp8"}, "--precision: found 'fp8', expected fp32|bf16"},
      {{"--variant", "google"}, "--variant: found 'google', expected terngrad|caffe"},
      {{"--data", "imagenet"}, "--data: found 'imagenet', expected digits|mnist"},
      {{"--device", "cuda:9"}, "--device: "},
      {{"--device", "tpu"}, "--device: "},
      {{"--lr-schedule", "step", "--lr-steps", "5,5"}, "--lr-steps: found 5 after 5"},
  };
  for (const BadInput& bad : table) expect_refused(bad);
}

TEST_F(TrainLenetBadInput, FlagsUnknownOrAtOdds) {
  const BadInput table[] = {
      {{"--bath-size", "32"}, "unknown argument '--bath-size', did you mean '--batch-size'?"},
      {{"--frobnicate"}, "unknown argument '--frobnicate'"},
      {{"leftover"}, "unknown argument 'leftover'"},
      {{"--lr"}, "--lr"},
      {{"--epochs", "1", "--iterations", "5"}, "--epochs and --iterations contradict each other"},
      {{"--resume"}, "--resume: needs --checkpoint DIR"},
      {{"--resume", "--checkpoint", "@ck", "--init", "@m"}, "--init and --resume contradict each other"},
      {{"--checkpoint-every", "5"}, "--checkpoint-every would change nothing: it needs --checkpoint DIR"},
      {{"--lr-schedule", "step"}, "--lr-schedule step: needs --lr-steps"},
      {{"--lr-steps", "5"}, "--lr-steps would change nothing: it belongs to --lr-schedule step"},
      {{"--optimizer", "adam", "--momentum", "0.5"}, "--momentum would change nothing: --optimizer adam has none"},
      {{"--eval-only"}, "--eval-only: needs a model"},
      {{"--predict", "@x.png"}, "--predict: needs a model"},
      {{"--config", "@none.ini"}, "none.ini"},
  };
  for (const BadInput& bad : table) expect_refused(bad);
  write_file(place("odd.ini"), "lr=0.1\nbath-size=4\n");
  expect_refused({{"--config", "@odd.ini"}, "bath-size"});
}

TEST_F(TrainLenetBadInput, PlacesAreCheckedBeforeTheFirstStep) {
  write_file(place("file"), "");
  const BadInput table[] = {
      {{"--save", "@none/model"}, "--save: "},
      {{"--log", "@none/log"}, "--log: "},
      {{"--plot", "@none/plot.svg"}, "--plot: "},
      {{"--log", "@data"}, "--log: "},
      {{"--tensorboard", "@file/events"}, "--tensorboard: "},
      {{"--checkpoint", "@file/checkpoints"}, "--checkpoint: "},
      {{"--init", "@none"}, "--init: "},
  };
  for (const BadInput& bad : table) expect_refused(bad);
}

TEST_F(TrainLenetBadInput, FullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  expect_refused({{"--log", "/dev/full"}, "/dev/full"});
}

TEST_F(TrainLenetBadInput, DataSetFiles) {
  expect_refused({{"--data-dir", "@none"}, place("none")});
  std::filesystem::resize_file(data_ / "train-images-idx3-ubyte", 1000);
  expect_refused({{}, (data_ / "train-images-idx3-ubyte").string()});
}

TEST_F(TrainLenetBadInput, ModelFiles) {
  ASSERT_EQ(run({"--iterations", "0", "--variant", "terngrad", "--save", place("terngrad"), "--quiet"}).code, 0);
  expect_refused({{"--init", "@terngrad"}, "'fc1.weight' is f32 [500, 2450], the model expects f32 [500, 800]"});
  std::filesystem::resize_file(place("terngrad"), 1000);
  expect_refused({{"--init", "@terngrad", "--variant", "terngrad"}, place("terngrad")});
}

TEST_F(TrainLenetBadInput, LossThatIsNotFinite) {
  const Outcome outcome = run({"--iterations", "9", "--lr", "1e30", "--save", place("model"), "--quiet"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("the loss is (nan|infinite) at step [2-4]: not finite first in "
                                                        "the output of layer '(conv|fc)[12]'")))
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place("model")));
}

}  // namespace
}  // namespace tern
