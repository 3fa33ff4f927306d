#include <fstream>
#include <regex>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/application.h"
#include "tern/trainer/rank/interrupt.h"
#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

using namespace trainer;

struct BadInput {
  std::vector<std::string> words;  // a word that starts with "@" is a path in the test's folder
  std::string sentence;            // a part of what stderr must say
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
      {{"--target-score", "700"}, "--target-score: found 700, expected 0 to 100: accuracy is in %"},
      {{"--target-score", "-1"}, "--target-score: found -1, expected 0 to 100: accuracy is in %"},
      {{"--lr-schedule", "step", "--lr-steps", "0"}, "--lr-steps: found 0, expected steps above 0"},
      {{"--lr-steps", "0.3,,0.6"}, "--lr-steps: found '', expected numbers with commas between"},
      {{"--batch-size", "0"}, "--batch-size: found 0, expected 1 or more"},
      {{"--batch-size", "2.5"}, "--batch-size: found '2.5', expected a whole number"},
      {{"--batch-size", "201"}, "--batch-size: found 201, expected 200 or fewer"},
      {{"--local-batch-size", "0"}, "--local-batch-size: found 0, expected 1 or more"},
      {{"--local-batch-size", "9000000000000000000"}, "--local-batch-size: found 9000000000000000000, expected"},
      {{"--eval-batch-size", "0"}, "--eval-batch-size: found 0"},
      {{"--top", "0"}, "--top: found 0, expected 1 or more"},
      {{"--top", "10"}, "--top: found 10, expected fewer than the 10 classes of mnist"},
      {{"--log-every", "2", "--plot", "@a.svg"},
       "--log-every and --plot contradict each other: a plot needs the scores of each step"},
      {{"--log-every", "2", "--accumulate", "2"}, "--log-every and --accumulate contradict each other"},
      {{"--log-every", "0"}, "--log-every: found 0, expected 1 or more"},
      {{"--histograms", "3"}, "--histograms would change nothing: it needs --log FILE or --tensorboard DIR"},
      {{"--histograms", "-1", "--log", "@log"}, "--histograms: found -1, expected 0 or more"},
      {{"--epochs", "-1"}, "--epochs: found -1"},
      {{"--iterations", "99999999999999999999"},
       "--iterations: found '99999999999999999999', expected a whole number from -9223372036854775808 to "
       "9223372036854775807"},
      {{"--lr", "1e999"}, "--lr: found '1e999', expected a number from -1.79"},
      {{"--iterations", "9000000000000000000"},
       "--iterations: found 9000000000000000000, expected 1000000000 or fewer"},
      {{"--epochs", "9000000000000000000"}, "--epochs: found 9000000000000000000, expected 1000000000 or fewer"},
      {{"--batch-size", "9000000000000000000"}, "--batch-size: found 9000000000000000000, expected 1000000000 or"},
      {{"--eval-batch-size", "9000000000000000000"}, "--eval-batch-size: found 9000000000000000000"},
      {{"--warmup", "9000000000000000000"}, "--warmup: found 9e+18"},
      {{"--warmup", "2.5"}, "--warmup: found 2.5, expected a whole number of steps, or a share of the run"},
      {{"--threads", "1025"}, "--threads: found 1025, expected 1024 or fewer"},
      {{"--loader-threads", "257"}, "--loader-threads: found 257, expected 256 or fewer"},
      {{"--momentum", "1"}, "--momentum: found 1, expected a finite number from 0 to below 1"},
      {{"--weight-decay", "-0.1"}, "--weight-decay: found -0.1"},
      {{"--ema-decay", "1"}, "--ema-decay: found 1"},
      {{"--label-smoothing", "nan"}, "--label-smoothing: found nan"},
      {{"--clip-norm", "-1"}, "--clip-norm: found -1"},
      {{"--grace", "-1"}, "--grace: found -1, expected a finite number from 0 to 86400"},
      {{"--seed", "-1"}, "--seed: found -1"},
      {{"--threads", "-2"}, "--threads: found -2"},
      {{"--loader-threads", "-1"}, "--loader-threads: found -1"},
      {{"--optimizer", "lion"}, "--optimizer: found 'lion', expected sgd|momentum|nesterov|adam|adamw|muon"},
      {{"--precision", "fp8"}, "--precision: found 'fp8', expected fp32|tf32|bf16"},
      {{"--variant", "google"}, "--variant: found 'google', expected terngrad|caffe"},
      {{"--data", "imagenet"}, "--data: found 'imagenet', expected digits|mnist"},
      {{"--device", "cuda:9"}, "--device: device cuda:9: "},
      {{"--device", "tpu"}, "--device: "},
      {{"--lr-schedule", "step", "--lr-steps", "5,5"}, "--lr-steps: found 5 after 5"},
      {{"--lr-schedule", "step", "--lr-steps", "5,12"}, "--lr-steps: found 12, expected less than the run's 12 steps"},
      {{"--lr-schedule", "step", "--lr-steps", "2.5"},
       "--lr-steps: found 2.5, expected a whole number of steps, or a share of the run, below 1"},
      {{"--lr-schedule", "step", "--lr-steps", "0.9,2"},
       "--lr-steps: in a run of 12 steps found 2 after 11, expected steps in rising order"},
      {{"--warmup", "2", "--warmup-lr", "-1"}, "--warmup-lr: found -1, expected a finite number from 0"},
      {{"--warmup-lr", "0.1"}, "--warmup-lr would change nothing: it needs --warmup"},
      {{"--iterations", "5", "--warmup", "6"}, "--warmup: found 6, expected at most the run's 5 steps"},
      {{"--plot", "@curves.txt"}, "curves.txt', expected a name ending in .svg"},
  };
  for (const BadInput& bad : table) expect_refused(bad);
}

TEST_F(TrainLenetBadInput, FlagsUnknownOrAtOdds) {
  const BadInput table[] = {
      {{"--bath-size", "32"}, "unknown argument '--bath-size', did you mean '--batch-size'?"},
      {{"--frobnicate"}, "unknown argument '--frobnicate'"},
      {{"--codec", "ternery"}, "--codec: no codec 'ternery', did you mean 'ternary'?"},
      {{"leftover"}, "unknown argument 'leftover'"},
      {{"--lr"}, "--lr: found nothing after it, expected X"},
      {{"--log", "--quiet"}, "--log: found the flag '--quiet', expected FILE"},
      {{"--predict", "--init", "@m"}, "--predict: found the flag '--init', expected FILE..."},
      {{"--quiet=maybe"}, "--quiet: found 'maybe', expected true or false"},
      {{"--lr", "0.1", "--lr=0.2"}, "--lr: given twice, expected once"},
      {{"--variant", "caffe", "--variant", "caffe"}, "--variant: given twice, expected once"},
      {{"--quiet", "--quiet"}, "--quiet: given twice, expected once"},
      {{"--shuffle", "--no-shuffle"}, "--no-shuffle: given beside --shuffle, expected once"},
      {{"--epochs", "1", "--iterations", "5"}, "--epochs and --iterations contradict each other"},
      {{"--resume"}, "--resume: needs --checkpoint DIR"},
      {{"--resume", "--checkpoint", "@ck", "--init", "@m"}, "--init and --resume contradict each other"},
      {{"--checkpoint-every", "5"}, "--checkpoint-every would change nothing: it needs --checkpoint DIR"},
      {{"--group", "fc1.bias"}, "--group: found 'fc1.bias', expected PATTERN:NAME=X,..."},
      {{"--group", "*:lr=0"}, "--group: '*', lr: found 0, expected a finite number above 0"},
      {{"--group", "*:lr=1,lr=2"}, "--group: '*', lr: given twice, expected once"},
      {{"--group", "*:speed=1"}, "--group: '*', speed: unknown, expected lr, momentum, weight-decay, rule or until"},
      {{"--optimizer", "adam", "--group", "*:momentum=0.5"}, "--group: '*', momentum: --optimizer adam has none"},
      {{"--group", "*:rule=adam,momentum=0.5"}, "--group: '*', momentum: rule adam has none"},
      {{"--group", "*:rule=lion"}, "--group: '*', rule: found 'lion', expected sgd|momentum|nesterov|adam|adamw|muon"},
      {{"--group", "fc1*:rule=muon"}, "--group: 'fc1*', rule: muon is for matrices, found 'fc1.bias' [500]"},
      {{"--optimizer", "sgd", "--group", "fc1*:rule=nesterov,momentum=0"}, "'fc1*', rule: nesterov needs a momentum"},
      {{"--group", "*:until=0.5"}, "--group: '*', until: --lr-schedule constant does not end"},
      {{"--group", "*:until=2.5", "--lr-schedule", "poly"}, "--group: '*', until: found 2.5, expected a whole number"},
      {{"--group", "*:until=999", "--lr-schedule", "poly"}, "--group: found until=999, expected at most the run's"},
      {{"--muon-iterations", "3"}, "--muon-iterations would change nothing: it belongs to --optimizer muon"},
      {{"--group", "fc9*:lr=1"}, "--group 'fc9*' has no parameters: no name matches"},
      {{"--accumulate", "0"}, "--accumulate: found 0, expected 1 or more"},
      {{"--accumulate", "500"}, "--accumulate: found 500, expected at most "},
      {{"--lr-schedule", "step"}, "--lr-schedule step: needs --lr-steps"},
      {{"--lr-factor", "0.5"}, "--lr-factor would change nothing: it belongs to --lr-schedule step"},
      {{"--lr-steps", "5"}, "--lr-steps would change nothing: it belongs to --lr-schedule step"},
      {{"--precision", "tf32"}, "--precision tf32: found --device cpu, expected cuda"},
      {{"--no-cuda-graph"}, "--no-cuda-graph would change nothing: it needs --device cuda"},
      {{"--eval-only", "--init", "@m", "--profile"}, "--profile would change nothing: --eval-only does not use it"},
      {{"--deterministic"}, "--deterministic would change nothing: on the CPU losses are the same from run to run"},
      {{"--optimizer", "adam", "--momentum", "0.5"}, "--momentum would change nothing: --optimizer adam has none"},
      {{"--eval-only"}, "--eval-only: needs a model"},
      {{"--predict", "@x.png"}, "--predict: needs a model"},
      {{"--eval-only", "--init", "@m", "--lr", "0.1"}, "--lr would change nothing: --eval-only does not use it"},
      {{"--eval-only", "--init", "@m", "--ist-store", "sharded"},
       "--ist-store would change nothing: --eval-only reads the whole model; use --iterations 0 to evaluate slices"},
      {{"--workers", "2", "--method", "ist", "--optimizer", "sgd", "--ist-momentum", "travel"},
       "--ist-momentum would change nothing: --optimizer sgd keeps no state"},
      {{"--workers", "2", "--method", "ist", "--ist-store", "sharded", "--ist-download", "bf16"},
       "--ist-download would change nothing: --ist-store sharded moves floats"},
      {{"--workers", "2", "--method", "ist", "--ema-decay", "0.9"},
       "--ema-decay and --method ist contradict each other: each worker trains its own model, expected --ema-decay 0"},
      {{"--workers", "2", "--method", "ist", "--codec", "ternary:share=on"},
       "independent subnets: codec ternary:clip=2.5,clip-mode=paper,share=on,bucket=0,pack=2bit shares scalers, but "
       "each "
       "rank sends other neurons; expected share=auto or off"},
      {{"--eval-only", "--init", "@m", "--save", "@n"}, "--save would change nothing: --eval-only does not use it"},
      {{"--eval-only", "--init", "@m", "--checkpoint", "@ck"}, "--checkpoint would change nothing: it needs --resume"},
      {{"--init", "@m", "--epochs", "2", "--predict", "@x"}, "--epochs would change nothing: --predict does not use"},
      {{"--init", "@m", "--log", "@log", "--predict", "@x"}, "--log would change nothing: --predict does not use it"},
  };
  for (const BadInput& bad : table) expect_refused(bad);
}

// The configuration file has all flags, with their defaults.
TEST_F(TrainLenetBadInput, AFlagOfAnotherVariantOfTheNetwork) {
  const Outcome refused = run_program({built_program("train_alexnet"), "--towers", "one", "--norm-momentum", "0.1"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "train_alexnet: --norm-momentum would change nothing: --towers one has no batch norm\n");
  const Outcome printed = run_program({built_program("train_alexnet"), "--towers", "one", "--print-config"});
  write_file(place("run.ini"), printed.out);
  EXPECT_EQ(run_program({built_program("train_alexnet"), "--config", place("run.ini"), "--print-config"}).out,
            printed.out);
}

TEST_F(TrainLenetBadInput, ConfigurationFiles) {
  expect_refused({{"--config", "@none.ini"}, "none.ini: cannot be read: No such file or directory"});
  expect_refused({{"--config", "@data"}, "data: is a folder, expected a file of flags"});
  const std::pair<const char*, const char*> table[] = {
      {"lr=0.1\nbath-size=4\n", ": line 2: unknown flag 'bath-size', did you mean 'batch-size'?"},
      {"lr=0.1\nlog=\"half\n", ": line 2: expected a closing quote"},
      {"# fast\nlr=fast\n", ": line 2: --lr: found 'fast', expected a number"},
      {"lr=[0.1,0.2]\n", ": line 1: --lr: found 2 values, expected one"},
      {"lr=0.1\ncheckpoint\n", ": line 2: --checkpoint: found no value, expected DIR"},
      {"quiet=maybe\n", ": line 1: --quiet: found 'maybe', expected true or false"},
      {"optimizer=lion\n", ": line 1: --optimizer: found 'lion', expected sgd|"},
      {"lr=0.1\n\nlr=0.1\n", ": line 3: --lr: given in line 1 already, expected once"},
      {"shuffle\nno-shuffle\n", ": line 2: --shuffle: given in line 1 already"},
      {"config=\"more.ini\"\n", ": line 1: found 'config', expected it on the command line only"},
  };
  for (const auto& [text, sentence] : table) {
    write_file(place("run.ini"), text);
    expect_refused({{"--config", "@run.ini"}, "--config: " + place("run.ini") + sentence});
  }
}

TEST_F(TrainLenetBadInput, WhatIsAtOddsWithAConfigurationFileNamesItsLine) {
  const std::string file = place("run.ini");
  write_file(file, "seed=3\nlr=-1\n");
  expect_refused({{"--config", file}, "--lr: found -1, expected a finite number above 0 (--lr: " + file + ", line 2)"});
  write_file(file, "epochs=2\niterations=5\n");
  expect_refused(
      {{"--config", file}, "contradict each other: give one (--epochs: " + file + ", line 1; --iterations: "});
  write_file(file, "momentum=0.5\n");
  expect_refused(
      {{"--config", file, "--optimizer", "adam"}, "--optimizer adam has none (--momentum: " + file + ", line 1)\n"});
}

TEST_F(TrainLenetBadInput, PlacesAreCheckedBeforeTheFirstStep) {
  write_file(place("file"), "");
  const BadInput table[] = {
      {{"--log", "@run", "--save", "@./run"}, "--log and --save: both name "},
      {{"--log", "@a.svg", "--plot", "@a.svg"}, "--log and --plot: both name "},
      {{"--init", "@file", "--log", "@file"}, "--init and --log: both name "},
      {{"--save", ""}, "--save: found nothing, expected FILE"},
      {{"--save", "@none/model"}, "--save: "},
      {{"--log", "@none/log"}, "--log: "},
      {{"--plot", "@none/plot.svg"}, "--plot: "},
      {{"--log", "@data"}, "--log: "},
      {{"--tensorboard", "@file/events"}, "--tensorboard: "},
      {{"--checkpoint", "@file/checkpoints"}, "--checkpoint: "},
      {{"--init", "@none"}, "--init: "},
  };
  for (const BadInput& bad : table) expect_refused(bad);
  expect_refused({{"--log", "/dev/full"}, "/dev/full"});
  expect_refused({{"--tensorboard", "@" + std::string(300, 'x')}, "File name too long"});
}

TEST_F(TrainLenetBadInput, AnEvaluationHasTheSameLimitOfTop) {
  ASSERT_EQ(run({"--iterations", "0", "--save", place("m")}).code, 0);
  expect_refused(
      {{"--eval-only", "--init", "@m", "--top", "10"}, "--top: found 10, expected fewer than the 10 classes"});
}

TEST_F(TrainLenetBadInput, ARefusedRunLeavesNothing) {
  expect_refused(
      {{"--log", "@log", "--checkpoint", "@ck", "--tensorboard", "@" + std::string(300, 'x')}, "--tensorboard"});
  EXPECT_FALSE(std::filesystem::exists(place("log")));
  expect_refused({{"--checkpoint", "@ck", "--tensorboard", "@tb", "--batch-size", "201"}, "--batch-size"});
  EXPECT_FALSE(std::filesystem::exists(place("ck")));
  EXPECT_FALSE(std::filesystem::exists(place("tb")));
  expect_refused({{"--eval-only", "--checkpoint", "@ck", "--resume"}, place("ck")});
  EXPECT_FALSE(std::filesystem::exists(place("ck")));
}

TEST_F(TrainLenetBadInput, FilesMayLieInTheFolderOfCheckpointsThatTheRunMakes) {
  const Outcome outcome =
      run({"--iterations", "2", "--checkpoint", place("new"), "--log", place("new/log"), "--save", place("new/model")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"new/log", "new/model", "new/step-00000002.tern"})
    EXPECT_TRUE(std::filesystem::exists(place(name))) << name;
  expect_refused({{"--checkpoint", "@ck", "--log", "@ck/no/log"}, "--log: "});
  expect_refused({{"--checkpoint", "@ck", "--save", "@ck/"}, "--save: "});
}

TEST_F(TrainLenetBadInput, FullDisk) {
  const auto run_within = [this](int kibibytes, const std::vector<std::string>& more) {
    std::vector<std::string> limited = {"/bin/sh", "-c", join({"ulimit -f ", 2 * kibibytes, "; exec \"$@\""}), "sh"};
    for (const auto& word : words(more)) limited.push_back(word);
    return run_program(limited);
  };
  write_file(place("model"), "the old file");
  const Outcome saving = run_within(64, {"--iterations", "1", "--save", place("model"), "--quiet"});
  EXPECT_EQ(saving.code, 2);
  EXPECT_NE(saving.err.find("--save: " + place("model") +
                            ": writing failed: File too large; nothing is kept without --checkpoint DIR"),
            std::string::npos)
      << saving.err;
  const Outcome shown = run_within(64, {"--iterations", "1", "--save", place("model")});
  EXPECT_NE(shown.out.find("test accuracy"), std::string::npos) << "the score is lost: " << shown.out;
  EXPECT_EQ(read_file(place("model")), "the old file");

  // There is room for the model, but not for a checkpoint, which has the momentum, too.
  const Outcome checkpointing =
      run_within(2500, {"--iterations", "1", "--checkpoint", place("run"), "--save", place("model"), "--quiet"});
  EXPECT_EQ(checkpointing.code, 2);
  EXPECT_NE(checkpointing.err.find("step-00000001.tern: writing failed: File too large"), std::string::npos)
      << checkpointing.err;
  EXPECT_EQ(run({"--eval-only", "--init", place("model"), "--quiet"}).code, 0);

  const Outcome logging = run_within(4, {"--iterations", "100", "--log", place("log"), "--quiet"});
  EXPECT_EQ(logging.code, 2);
  EXPECT_NE(logging.err.find("--log: " + place("log") + ": cannot be written: File too large"), std::string::npos)
      << logging.err;
  const auto files = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 3) << "more than the data, the model and the log";
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
  EXPECT_TRUE(std::regex_search(
      outcome.err, std::regex("the loss is (nan|infinite) at step [2-4]; the first value that is not finite is in "
                              "the output of layer '(conv|fc)[12]'")))
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place("model")));
}

TEST_F(TrainLenetBadInput, ALastUpdateThatDivergesLeavesNothing) {
  for (const char* lr : {"1e30", "1e300"}) {
    const Outcome outcome = run({"--iterations", "1", "--lr", lr, "--save", place("model"), "--checkpoint", place("ck"),
                                 "--plot", place("plot.svg"), "--quiet"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(std::regex_search(
        outcome.err, std::regex("the loss is (nan|infinite) after step 1; the first value that is not finite is in "
                                "the output of layer '(conv|fc)[12]'")))
        << outcome.err;
    for (const char* name : {"model", "ck", "plot.svg"}) EXPECT_FALSE(std::filesystem::exists(place(name))) << name;
  }
}

TEST_F(TrainLenetBadInput, ADivergedModelBecomesNoCheckpoint) {
  const Outcome outcome =
      run({"--iterations", "3", "--lr", "1e300", "--checkpoint", place("ck"), "--checkpoint-every", "1", "--quiet"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("the model diverged: conv1.weight is not finite after step 1"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place("ck")));
}

TEST(RunApplication, TurnsWhatIsThrownIntoAnExitCode) {
  const auto code_of = [](auto error) { return run_application("test", [&error]() -> int { throw error; }); };
  EXPECT_EQ(run_application("test", [] { return 0; }), 0);
  EXPECT_EQ(code_of(Error("a fault inside")), 1);
  EXPECT_EQ(code_of(InputError("a wrong flag")), 2);
  EXPECT_EQ(code_of(std::filesystem::filesystem_error("stat", "file", std::make_error_code(std::errc::io_error))), 2);
  EXPECT_EQ(code_of(ResourceError("no memory")), 2);
  EXPECT_EQ(code_of(std::bad_alloc()), 2);
  EXPECT_EQ(code_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))), 2);
  EXPECT_EQ(code_of(std::system_error(std::make_error_code(std::errc::io_error))), 1);
  EXPECT_EQ(code_of(PeerError("rank 1 was lost")), 3);
  EXPECT_EQ(code_of(Interrupted("interrupted")), 130);
}

TEST(RunApplication, ShowsNoControlBytes) {
  testing::internal::CaptureStderr();
  run_application("test", []() -> int { throw InputError("the file's tensor '\x1b[2J' is odd"); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "test: the file's tensor '\\x1b[2J' is odd\n");
}

}  // namespace
}  // namespace tern
