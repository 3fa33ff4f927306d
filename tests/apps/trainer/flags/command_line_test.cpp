#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

TEST_F(TrainLenet, PrintedConfigurationReadsBack) {
  const std::vector<std::string> flags = {"--iterations", "7",       "--lr",          "0.0300000000000001",
                                          "--optimizer",  "sgd",     "--seed",        "5",
                                          "--no-shuffle", "--quiet", "--lr-schedule", "step",
                                          "--lr-steps",   "3,5",     "--log",         place("log with spaces")};
  std::vector<std::string> printing = flags;
  printing.push_back("--print-config");
  const Outcome printed = run(printing);
  ASSERT_EQ(printed.code, 0) << printed.err;
  write_file(place("config"), printed.out);
  const Outcome again = run_program({built_program("train_lenet"), "--config", place("config"), "--print-config"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, printed.out);
  ASSERT_EQ(run_program({built_program("train_lenet"), "--config", place("config")}).code, 0);
  const auto from_file = losses(place("log with spaces"));
  EXPECT_EQ(from_file.size(), 7);
  ASSERT_EQ(run(flags).code, 0);
  EXPECT_EQ(losses(place("log with spaces")), from_file);
}

TEST_F(TrainLenet, PrintedPathsReadBackWhateverTheyHold) {
  const std::vector<std::string> paths = {"a \"b\" 'c'", "ends in \\", "# no, a comment",
                                          "x=[1,2]",     "two\nlines", " y "};
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    const Outcome printed = run({"--log", path, "--print-config"});
    ASSERT_EQ(printed.code, 0) << printed.err;
    write_file(place("config"), printed.out);
    ASSERT_EQ(run_program({built_program("train_lenet"), "--config", place("config"), "--print-config"}).out,
              printed.out);
    write_file(place("config"), printed.out + "iterations=1\n");
    std::filesystem::create_directory(place("here"));
    const std::string command =
        "cd '" + place("here") + "' && exec '" + built_program("train_lenet") + "' --config ../config --quiet";
    ASSERT_EQ(run_program({"/bin/sh", "-c", command}).code, 0);
    EXPECT_TRUE(std::filesystem::exists(place("here/" + path)));
  }
}

TEST_F(TrainLenet, TheCommandLineOverrulesTheFile) {
  write_file(place("config"), "lr=0.5\nepochs=4\n");
  const Outcome printed = run({"--config", place("config"), "--lr", "0.25", "--print-config"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_NE(printed.out.find("\nlr=0.25\n"), std::string::npos) << printed.out;
  EXPECT_NE(printed.out.find("\nepochs=4\n"), std::string::npos) << printed.out;

  write_file(place("config"), "shuffle\niterations=500\nresume\n");
  const Outcome other =
      run({"--config", place("config"), "--epochs", "2", "--no-shuffle", "--resume=false", "--print-config"});
  EXPECT_EQ(other.code, 0) << other.err;
  for (const char* line : {"\nepochs=2\n", "\n# iterations=\n", "\nshuffle=false\n", "\nresume=false\n"})
    EXPECT_NE(other.out.find(line), std::string::npos) << line << " in: " << other.out;
}

// A file sets the samples of one worker. The number of workers may change on the command line, and the total follows.
TEST_F(TrainLenet, TheTotalBatchFollowsTheLocalOne) {
  write_file(place("config"), "local-batch-size=8\nworkers=2\n");
  const auto printed = [this](const std::vector<std::string>& more) {
    std::vector<std::string> all = {built_program("train_lenet"), "--config", place("config"), "--print-config"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  const Outcome whole = printed({});
  EXPECT_NE(whole.out.find("\n# batch-size=16\nlocal-batch-size=8\n"), std::string::npos) << whole.out;
  EXPECT_NE(printed({"--workers", "4"}).out.find("\n# batch-size=32\n"), std::string::npos);
  const Outcome overruled = printed({"--batch-size", "30"});
  EXPECT_NE(overruled.out.find("\nbatch-size=30\n# local-batch-size=\n"), std::string::npos) << overruled.out;
  write_file(place("config"), whole.out);
  EXPECT_NE(printed({"--workers", "4"}).out.find("\n# batch-size=32\n"), std::string::npos);
  write_file(place("config"), "local-batch-size=8\nbatch-size=30\nworkers=2\n");
  const Outcome refused = printed({});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(
      refused.err.find("--batch-size 30 and --local-batch-size 8 contradict each other: 2 workers have 16 samples "
                       "in a step (--batch-size: " +
                       place("config") + ", line 2; --local-batch-size: " + place("config") + ", line 1)"),
      std::string::npos)
      << refused.err;
}

TEST_F(TrainLenet, EvaluatesNoLargerBatchesThanAWorkersTrainingStepUnlessTold) {
  const auto size = [](std::vector<std::string> words) {
    words.insert(words.begin(), {built_program("train_lenet"), "--print-config"});
    const std::string printed = run_program(words).out, key = "\neval-batch-size=";
    return std::stoi(printed.substr(printed.find(key) + key.size()));
  };
  EXPECT_EQ(size({}), 64);
  EXPECT_EQ(size({"--batch-size", "200", "--workers", "2"}), 100);
  EXPECT_EQ(size({"--local-batch-size", "100", "--workers", "2"}), 100);
  EXPECT_EQ(size({"--batch-size", "1000"}), 250);
  EXPECT_EQ(size({"--batch-size", "8"}), 16);
  EXPECT_EQ(size({"--batch-size", "8", "--eval-batch-size", "300"}), 300);
  EXPECT_EQ(size({"--batch-size", "8", "--workers", "2", "--method", "ist", "--ist-eval", "batch"}), 250);
}

TEST_F(TrainLenet, HelpListsEveryFlag) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* flag : {"--data ",
                           "--data-dir",
                           "--epochs",
                           "--iterations",
                           "--batch-size",
                           "--local-batch-size",
                           "--eval-batch-size",
                           "--top ",
                           "--optimizer",
                           "--lr ",
                           "--lr-schedule",
                           "--lr-power",
                           "--lr-steps",
                           "--lr-factor",
                           "--warmup ",
                           "--warmup-lr",
                           "--momentum",
                           "--weight-decay",
                           "--ema-decay",
                           "--label-smoothing",
                           "--clip-norm",
                           "--seed",
                           "--shuffle,--no-shuffle",
                           "--loader-threads",
                           "--threads",
                           "--workers",
                           "--transport",
                           "--method",
                           "--local-steps",
                           "--ist-scope",
                           "--ist-momentum",
                           "--ist-download",
                           "--ist-eval",
                           "--calibrate-batches",
                           "--codec",
                           "--exchange",
                           "--min-compress",
                           "--keep-float",
                           "--weight-decay-in-gradient",
                           "--overlap",
                           "--stale",
                           "--check-every",
                           "--link",
                           "--dead-after",
                           "--max-restarts",
                           "--bind",
                           "--rank",
                           "--world-size",
                           "--master",
                           "--device",
                           "--precision",
                           "--deterministic",
                           "--cuda-graph,--no-cuda-graph",
                           "--profile",
                           "--grace",
                           "--log",
                           "--log-every",
                           "--tensorboard",
                           "--plot",
                           "--checkpoint ",
                           "--checkpoint-every",
                           "--resume",
                           "--init",
                           "--init-partial",
                           "--freeze",
                           "--save",
                           "--eval-only",
                           "--predict",
                           "--quiet",
                           "--config",
                           "--print-config",
                           "--version",
                           "--variant"})
    EXPECT_NE(help.out.find(std::string("  ") + flag), std::string::npos) << flag;
  EXPECT_EQ(help.out.find("\n\n\n"), std::string::npos) << help.out;
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("train_lenet: tern ")) << version.out;
}

}  // namespace
}  // namespace tern
