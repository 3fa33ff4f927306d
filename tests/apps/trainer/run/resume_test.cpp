#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "tern/networks/mlp.h"
#include "tern/optim/checkpoint.h"
#include "tern/trainer/run/trainer.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/disk_calls.h"

namespace tern {
namespace {

using namespace trainer;

/// Stops runs and resumes them. Each run has every kind of state: momentum, averages, a schedule, shuffled epochs.
class TrainLenetResume : public TrainLenet {
 protected:
  std::vector<std::string> recipe(const std::vector<std::string>& more) const {
    return over({"--epochs", "3", "--ema-decay", "0.99", "--lr-schedule", "poly"}, more);
  }
  std::vector<std::string> checkpointing(const std::vector<std::string>& more) const {
    return recipe(over({"--checkpoint", place("run"), "--checkpoint-every", "5", "--log", place("log")}, more));
  }
  bool has_checkpoint() const {
    if (!std::filesystem::exists(place("run"))) return false;
    for (const auto& entry : std::filesystem::directory_iterator(place("run")))
      if (entry.path().extension() == ".tern") return true;
    return false;
  }
  /// Waits until the log has `lines` lines.
  void wait_for_lines(size_t lines) const { TrainLenet::wait_for_lines(place("log"), lines); }
};

TEST_F(TrainLenetResume, ARunIsAloneInItsFolder) {
  const std::vector<std::string> endless = {"--iterations", "1000000",      "--checkpoint-every", "5",
                                            "--quiet",      "--checkpoint", place("run")};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), endless.begin(), endless.end());
    return more;
  };
  Process first(words(with({"--log", place("log")})));
  wait_for_lines(10);
  const auto again = with({"--log", place("other"), "--resume"});
  const Outcome second = run(again);
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("--checkpoint: " + place("run") + ": another run is at work there"), std::string::npos)
      << second.err;
  first.send(SIGKILL);
  first.wait();
  Process third(words(again));
  for (int i = 0; i < 2000 && !std::filesystem::exists(place("other")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(std::filesystem::exists(place("other"))) << "the lock outlived its run";
}

TEST_F(TrainLenetResume, GivesTheLossesOfTheUnbrokenRunFromAnyCheckpoint) {
  const auto unbroken = train(recipe({"--save", place("unbroken")}));
  ASSERT_EQ(unbroken.size(), 36);
  ASSERT_EQ(run(checkpointing({})).code, 0);
  EXPECT_EQ(losses(place("log")), unbroken) << "writing checkpoints changed the losses";

  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(place("run"))) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 2);
  for (const auto& file : files) {
    std::filesystem::remove_all(place("again"));
    std::filesystem::create_directory(place("again"));
    std::filesystem::copy(file, place("again"));
    const auto again =
        recipe({"--checkpoint", place("again"), "--resume", "--log", place("rest"), "--save", place("m")});
    std::filesystem::remove(place("rest"));
    const Outcome outcome = run(again);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& [step, loss] : losses(place("rest"))) EXPECT_EQ(loss, unbroken.at(step)) << "step " << step;
    EXPECT_EQ(read_file(place("m")), read_file(place("unbroken")));
  }
}

TEST_F(TrainLenetResume, SurvivesSigkillAtRandomSteps) {
  const auto unbroken = train(recipe({}));
  std::mt19937 random(5);
  size_t lines = 0;
  int killed = 0;
  for (int run = 0; run < 3; ++run) {
    Process process(
        words(checkpointing(has_checkpoint() ? std::vector<std::string>{"--resume"} : std::vector<std::string>{})));
    wait_for_lines(lines += 3 + random() % 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    process.send(SIGKILL);
    killed += process.wait().code == 128 + SIGKILL;
  }
  ASSERT_GE(killed, 1);
  ASSERT_TRUE(has_checkpoint());
  const Outcome outcome = run(checkpointing({"--resume"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(losses(place("log")), unbroken);
}

TEST_F(TrainLenetResume, AnInterruptEndsTheStepWritesACheckpointAndGives130) {
  const auto unbroken = train(recipe({}));
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(place("run"));
    std::filesystem::remove(place("log"));
    Process process(words(checkpointing({"--checkpoint-every", "1000"})));
    wait_for_lines(4);
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_NE(outcome.err.find("interrupted after step "), std::string::npos) << outcome.err;
    ASSERT_TRUE(has_checkpoint());
    const size_t done = losses(place("log")).size();
    EXPECT_LT(done, unbroken.size());
    EXPECT_EQ(run(checkpointing({"--resume", "--checkpoint-every", "1000"})).code, 0);
    EXPECT_EQ(losses(place("log")), unbroken);
    EXPECT_EQ(std::ranges::count(read_file(place("log")), '\n'), 36 + 2 + 3 + 1) << "a step or evaluation stands twice";
  }
}

// Each stop comes at some step of a round of five steps.
TEST_F(TrainLenetResume, InterruptsChangeNoLossOfLocalSgdSlow) {
  for (const char* transport : {"inproc", "socket"}) {
    SCOPED_TRACE(transport);
    const std::vector<std::string> recipe = {"--workers",          "4",         "--transport", transport,
                                             "--method",           "local-sgd", "--codec",     "error-feedback:ternary",
                                             "--local-steps",      "5",         "--epochs",    "8",
                                             "--local-batch-size", "8"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), recipe.begin(), recipe.end());
      return more;
    };
    const auto unbroken = train(with({"--save", place("unbroken")}));
    ASSERT_EQ(unbroken.size(), 48);
    std::filesystem::remove_all(place("run"));
    std::filesystem::remove(place("log"));
    const auto part = with({"--checkpoint", place("run"), "--log", place("log"), "--quiet", "--save", place("saved")});
    size_t lines = 0;
    int stopped = 0;
    for (const size_t more : {5, 7, 9}) {
      auto flags = part;
      if (stopped > 0) flags.emplace_back("--resume");
      Process process(words(flags));
      wait_for_lines(lines + more);
      process.send(SIGTERM);
      const Outcome outcome = process.wait();
      ASSERT_EQ(outcome.code, 130) << outcome.err;
      lines = static_cast<size_t>(std::ranges::count(read_file(place("log")), '\n'));
      ++stopped;
    }
    auto flags = part;
    flags.emplace_back("--resume");
    ASSERT_EQ(run(flags).code, 0);
    EXPECT_EQ(losses(place("log")), unbroken);
    EXPECT_EQ(read_file(place("saved")), read_file(place("unbroken")));
  }
}

TEST_F(TrainLenetResume, RefusesAnotherRun) {
  ASSERT_EQ(run(checkpointing({})).code, 0);
  const std::pair<std::vector<std::string>, std::string> table[] = {
      {{"--resume", "--seed", "9"}, "--seed was 1 and is 9 now"},
      {{"--resume", "--batch-size", "8"}, "--batch-size was 16 and is 8 now"},
      {{"--resume", "--variant", "terngrad"}, "--variant was caffe and is terngrad now"},
      {{"--resume", "--no-shuffle"}, "--shuffle was true and is false now"},
      {{"--resume", "--workers", "2", "--transport", "inproc"}, "--workers was not given and is 2 now"},
      {{}, "holds a run already"},
  };
  for (const auto& [more, sentence] : table) {
    const Outcome outcome = run(checkpointing(more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
  const Outcome none = run({"--checkpoint", place("none"), "--resume"});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find(place("none")), std::string::npos) << none.err;
}

TEST_F(TrainLenetResume, RefusesOtherDataOfTheSameSize) {
  const std::vector<std::string> recipe = {"--iterations", "3", "--checkpoint", place("run")};
  const auto resumed = [&] { return run(over(recipe, {"--resume"})); };
  ASSERT_EQ(run(recipe).code, 0);
  const auto file = data_ / "train-images-idx3-ubyte";
  const std::string before = read_file(file);
  std::string changed = before;
  changed.back() ^= 1;
  write_file(file, changed);
  const Outcome other = resumed();
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("step-00000003.tern: training data was "), std::string::npos) << other.err;
  write_file(file, before);
  EXPECT_EQ(resumed().code, 0);

  Checkpoint without = load_checkpoint(place("run"));
  EXPECT_EQ(without.contract.erase("training data"), 1);
  save_checkpoint(place("run"), without);
  const Outcome unknown = resumed();
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("training data was not given and is "), std::string::npos) << unknown.err;
}

TEST_F(TrainLenetResume, GoesOnWithARunThatBeganWithInit) {
  train({"--iterations", "1", "--seed", "5", "--save", place("model")});
  const std::vector<std::string> of_each_part[] = {{}, {"--freeze", "conv*"}};
  for (const auto& flags : of_each_part) {
    std::vector<std::string> begin = flags;
    begin.insert(begin.end(), {"--init", place("model")});
    if (!flags.empty()) begin.emplace_back("--init-partial");
    const auto unbroken = train(over({"--iterations", "20", "--save", place("unbroken")}, begin));
    std::filesystem::remove_all(place("run"));
    train(over({"--iterations", "10", "--checkpoint", place("run")}, begin));
    auto resumed = flags;
    resumed.emplace_back("--resume");
    EXPECT_EQ(train(over({"--iterations", "20", "--checkpoint", place("run"), "--save", place("resumed")}, resumed)),
              unbroken);
    EXPECT_EQ(read_file(place("resumed")), read_file(place("unbroken")));
  }
}

TEST_F(TrainLenetResume, RefusesALengthThatChangesTheRates) {
  const auto trained = [&](const std::string& folder, std::vector<std::string> more) {
    more.insert(more.end(), {"--checkpoint", place(folder)});
    return run(more);
  };
  const std::vector<std::vector<std::string>> of_length = {{"--lr-schedule", "cosine"},
                                                           {"--lr-schedule", "step", "--lr-steps", "0.5"},
                                                           {"--warmup", "0.5"}},
                                              of_steps = {
                                                  {"--lr-schedule", "step", "--lr-steps", "3"}, {"--warmup", "2"}, {}};
  for (size_t i = 0; i < of_length.size(); ++i)
    for (const auto& rates : {of_length[i], of_steps[i]}) {
      SCOPED_TRACE(testing::PrintToString(rates));
      const bool refused = rates == of_length[i];
      const std::string folder = join({refused ? "length " : "steps ", i});
      EXPECT_EQ(trained(folder, over(rates, {"--iterations", "4"})).code, 0);
      const Outcome longer = trained(folder, over(rates, {"--iterations", "8", "--resume"}));
      EXPECT_EQ(longer.code, refused ? 2 : 0) << longer.err;
      EXPECT_EQ(longer.err.find("number of steps was 4 and is 8 now") != std::string::npos, refused) << longer.err;
    }
}

TEST_F(TrainLenetResume, NamesThePreviousCheckpointWhereTheNewestIsBroken) {
  ASSERT_EQ(run(checkpointing({})).code, 0);
  std::string bytes = read_file(place("run/step-00000036.tern"));
  bytes[bytes.size() / 2] ^= 1;
  write_file(place("run/step-00000036.tern"), bytes);
  const Outcome outcome = run(checkpointing({"--resume"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("step-00000036.tern"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("step-00000035.tern"), std::string::npos) << outcome.err;
}

TEST_F(TrainLenetResume, RefusesAFileOfAnotherStep) {
  ASSERT_EQ(run(checkpointing({})).code, 0);
  std::filesystem::rename(place("run/step-00000035.tern"), place("run/step-00000040.tern"));
  const Outcome outcome = run(checkpointing({"--resume"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(place("run/step-00000040.tern") +
                             ": __metadata__ 'step': found '35', expected '40' as in the file's name"),
            std::string::npos)
      << outcome.err;
}

TEST_F(TrainLenetResume, RefusesImpossibleCounts) {
  const std::vector<std::string> recipe = {"--iterations", "3",    "--ema-decay",  "0.9",
                                           "--optimizer",  "adam", "--checkpoint", place("run")};
  ASSERT_EQ(run(recipe).code, 0);
  auto again = recipe;
  again.emplace_back("--resume");
  const std::string file = place("run/step-00000003.tern"), whole = read_file(file);
  for (const char* section : {"optimizer", "average"}) {
    write_file(file, whole);
    const Checkpoint odd = load_checkpoint(place("run"));
    const auto is_count = [](const auto& entry) { return entry.second.dtype() == DType::i64; };
    const auto count = std::ranges::find_if(odd.section(section), is_count);
    ASSERT_NE(count, odd.section(section).end());
    count->second.fill(-5);
    save_checkpoint(place("run"), odd);
    const Outcome outcome = run(again);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(file + ": " + section + ": '" + count->first + "': found -5, expected 0 to 3"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(TrainLenetResume, KeepsTheIdOfItsRun) {
  const auto id = [&](const std::string& folder) { return load_checkpoint(place(folder)).run; };
  for (const char* folder : {"run", "other"})
    ASSERT_EQ(run({"--iterations", "2", "--checkpoint", place(folder)}).code, 0);
  const std::string first = id("run");
  EXPECT_EQ(first.size(), 32u);
  EXPECT_NE(id("other"), first);
  ASSERT_EQ(run({"--iterations", "5", "--checkpoint", place("run"), "--resume"}).code, 0);
  EXPECT_EQ(load_checkpoint(place("run")).step, 5);
  EXPECT_EQ(id("run"), first);
}

TEST_F(TrainLenetResume, SyncsTheLogBeforeEachCheckpointCounts) {
  TrainSettings settings;
  settings.data = "mnist";
  settings.data_dir = data_.string();
  settings.batch_size = 16;
  settings.iterations = 6;
  settings.threads = 1;
  settings.checkpoint = place("run");
  settings.checkpoint_every = 2;
  settings.log = place("log");
  settings.quiet = true;
  const Application application = {.name = "test", .model = [](const ModelSpec& spec) -> std::unique_ptr<Layer> {
                                     const int64_t pixels = spec.images.numel();
                                     return std::make_unique<networks::Mlp>(networks::Mlp::Options{
                                         .widths = {pixels, 10}, .norm = networks::MlpNorm::none});
                                   }};
  const InterruptGuard interrupt;
  LineWriter out(STDOUT_FILENO);
  const DiskCalls calls;
  Trainer(application, settings, {load_run_data(settings), interrupt, out}).train();
  std::vector<std::string> order;
  for (const auto& call : DiskCalls::found()) {
    if (call == "sync " + place("log")) order.emplace_back("log");
    if (call.starts_with("rename " + place("run"))) order.push_back(call.substr(call.rfind('/') + 1));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"log", "step-00000002.tern", "log", "step-00000004.tern", "log",
                                             "step-00000006.tern"}));
}

}  // namespace
}  // namespace tern
