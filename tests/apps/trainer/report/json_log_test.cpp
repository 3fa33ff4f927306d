#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "tern/trainer/report/progress.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/terminal.h"

namespace tern {
namespace {

using namespace trainer;

TEST_F(TrainLenet, LogsEveryStepEvaluationAndTheEnd) {
  const Outcome outcome = run({"--epochs", "2", "--log", place("log")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto events = read_log(place("log"));
  ASSERT_EQ(events.size(), 1 + 24 + 2 + 1);

  const auto& start = events.front();
  EXPECT_EQ(start["event"], "start");
  EXPECT_EQ(start["batch_size"], 16);
  EXPECT_EQ(start["lr"], 0.01);
  EXPECT_EQ(start["variant"], "caffe");
  EXPECT_EQ(start["threads"], 1);
  EXPECT_EQ(start["parameters"], 431080);
  EXPECT_FALSE(start["processor"].get<std::string>().empty());
  EXPECT_TRUE(start["versions"].contains("tern"));

  double seconds = 0;
  int64_t step = 0;
  for (const auto& event : events) {
    if (event["event"] == "step") {
      EXPECT_EQ(event["step"], ++step);
      EXPECT_EQ(event["epoch"], (step - 1) / 12 + 1);
      EXPECT_GT(event["seconds"], seconds);
      EXPECT_EQ(event["lr"], 0.01);
      seconds = event["seconds"];
    } else if (event["event"] == "eval") {
      EXPECT_EQ(event["step"], step);
      EXPECT_EQ(event["epoch"], step / 12);
    }
  }
  EXPECT_EQ(step, 24);

  const auto& eval = events[events.size() - 2];
  const auto& done = events.back();
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["steps"], 24);
  EXPECT_EQ(done["seconds"], seconds);
  EXPECT_EQ(done["accuracy"], eval["accuracy"]);
  EXPECT_EQ(done["loss"], eval["loss"]);
  EXPECT_GT(done["images_per_second"], 0);
  // The loader prepares batches ahead. So even on a busy machine, the steps take longer than the wait for data.
  EXPECT_GE(done["data_wait"], 0);
  EXPECT_LT(done["data_wait"], 0.5);
  // One of 50 test images counts for 0.02.
  const double images = done["accuracy"].get<double>() * kTest;
  EXPECT_NEAR(images, std::round(images), 1e-9);
}

TEST_F(TrainLenet, RefusesALogThatAnotherRunWrites) {
  const std::vector<std::string> endless = {"--iterations", "1000000", "--log", place("log"), "--quiet"};
  Process first(words(endless));
  wait_for_lines(place("log"), 10);
  const Outcome second = run({"--iterations", "1", "--log", place("log")});
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("--log: " + place("log") + ": another run writes it"), std::string::npos) << second.err;
  first.send(SIGINT);
  EXPECT_EQ(first.wait().code, 128 + SIGINT);
  const auto events = read_log(place("log"));
  EXPECT_EQ(events.front()["total_steps"], 1000000);
  EXPECT_EQ(events[9]["step"], 9) << "the second run emptied the log";

  EXPECT_EQ(run({"--iterations", "1", "--log", place("log")}).code, 0);
  EXPECT_EQ(read_log(place("log")).size(), 1 + 1 + 1 + 1) << "a new run begins a new log";
}

TEST_F(TrainLenet, LogsTheNormOfTheGradients) {
  const auto first_norm = [this](const std::vector<std::string>& more) {
    train(over({"--iterations", "2"}, more));
    return read_log(place("train.jsonl"))[1]["gradient_norm"].get<double>();
  };
  const double norm = first_norm({});
  EXPECT_GT(norm, 0.1);
  EXPECT_EQ(first_norm({"--clip-norm", "0.1"}), norm) << "the norm before clipping";
  EXPECT_NEAR(first_norm({"--workers", "2"}), norm, 1e-5 * norm) << "that of the mean gradient";
  EXPECT_NEAR(first_norm({"--batch-size", "4", "--accumulate", "4"}), norm, 1e-5 * norm);
}

TEST_F(TrainLenet, LogsHistograms) {
  const auto losses = train({"--iterations", "5"});
  EXPECT_EQ(train({"--iterations", "5", "--histograms", "2", "--tensorboard", place("tb")}), losses);
  std::vector<nlohmann::json> found;
  const auto events = read_log(place("train.jsonl"));
  for (size_t i = 1; i < events.size(); ++i) {
    if (events[i]["event"] != "histograms") continue;
    found.push_back(events[i]);
    EXPECT_EQ(events[i - 1]["event"], "step");
    EXPECT_EQ(events[i - 1]["step"], events[i]["step"]);
    double squares = 0;  // of gradients, at most: each in the interval's end that is farther from 0
    for (const auto& [name, histogram] : events[i]["gradients"].items()) {
      const double low = histogram["low"], high = histogram["high"];
      const auto counts = histogram["counts"].get<std::vector<int64_t>>();
      const double width = (high - low) / static_cast<double>(counts.size());
      for (size_t k = 0; k < counts.size(); ++k) {
        const double from = low + static_cast<double>(k) * width;
        squares += static_cast<double>(counts[k]) * std::max(from * from, (from + width) * (from + width));
      }
    }
    EXPECT_GE(std::sqrt(squares), events[i - 1]["gradient_norm"].get<double>());
  }
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0]["step"], 2);
  EXPECT_EQ(found[1]["step"], 4);
  ASSERT_EQ(found[0]["weights"].size(), 8u);
  ASSERT_EQ(found[0]["gradients"].size(), 8u);
  const auto counts = found[0]["weights"]["fc2.weight"]["counts"].get<std::vector<int64_t>>();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 5000);
  EXPECT_NE(found[0]["weights"], found[1]["weights"]);
}

TEST_F(TrainLenet, LogsTheOneEpochThatNobodyAskedFor) {
  train({"--batch-size", "200"});
  const auto events = read_log(place("train.jsonl"));
  EXPECT_EQ(events.front()["epochs"], 1);
  EXPECT_EQ(events.front()["iterations"], nullptr);
  EXPECT_EQ(events.back()["steps"], 1);
}

TEST_F(TrainLenet, LogsFileNamesOfAnyBytes) {
  train({"--iterations", "1", "--save", place("model-\xff")});
  EXPECT_EQ(read_log(place("train.jsonl")).front()["save"], place("model-\uFFFD"));
}

TEST_F(TrainLenet, PrintsASummaryOrNothing) {
  const Outcome outcome = run({"--iterations", "3"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* line : {"accuracy ", "loss ", "images/s", "parameters    431,080", "peak memory "})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << " in: " << outcome.out;
  EXPECT_EQ(outcome.out.find('\r'), std::string::npos) << "a live line in a pipe";
  EXPECT_EQ(run({"--iterations", "3", "--quiet"}).out, "");
}

TEST_F(TrainLenet, PrintsNoSpeedOfNoSteps) {
  ASSERT_EQ(run({"--iterations", "3", "--checkpoint", place("ck"), "--quiet"}).code, 0);
  const Outcome resumed = run({"--iterations", "3", "--checkpoint", place("ck"), "--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("accuracy "), std::string::npos) << resumed.out;
  EXPECT_EQ(resumed.out.find("images/s"), std::string::npos) << resumed.out;
}

TEST_F(TrainLenet, ProfilesTheOperationsOfItsSteps) {
  const Outcome outcome = run({"--iterations", "3", "--profile", "--log", place("log")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("operation "), std::string::npos) << outcome.out;
  const auto done = read_log(place("log")).back();
  ASSERT_TRUE(done.contains("operations")) << done;
  EXPECT_EQ(done["operations"]["conv2d"]["calls"], 6) << "two layers, three steps, and no evaluation";
  EXPECT_EQ(done["operations"]["sgd_update"]["calls"], 3);
  double sum = 0;
  for (const auto& [name, operation] : done["operations"].items()) {
    EXPECT_NE(outcome.out.find("\n" + name + " "), std::string::npos) << name;
    sum += operation["seconds"].get<double>();
  }
  EXPECT_LE(sum, done["seconds"].get<double>());
  EXPECT_GT(sum, 0.5 * done["seconds"].get<double>()) << "most of a step is in some operation";
}

TEST_F(TrainLenet, SaysWhereBf16IsSlow) {
  const auto first_lines = [this](const char* precision) {
    auto limited = words({"--iterations", "1", "--precision", precision});
    limited.insert(limited.begin(), {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=AVX2"});
    return run_program(limited).out;
  };
  EXPECT_NE(first_lines("bf16").find("bf16 is slower on it than fp32"), std::string::npos);
  EXPECT_EQ(first_lines("fp32").find("bf16 is slower"), std::string::npos);
}

TEST(Progress, ShowsNoSpeedBeforeASecondStep) {
  const test::Terminal terminal;
  LineWriter out(terminal.program_end());
  Progress progress(out);
  RunStart run;
  run.first_step = 5;
  run.noun = "images";
  run.samples_per_step = 64;
  progress.started(run);
  for (const int64_t step : {6, 7}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(110));  // the writer draws a live line every 100 ms
    progress.stepped({.step = step, .seconds = 0.5 * static_cast<double>(step)});
  }
  const std::string text = terminal.read();
  const size_t second = text.find("step 7/");
  EXPECT_EQ(text.substr(0, second).find("images/s"), std::string::npos) << text;
  EXPECT_NE(text.substr(second).find("128 images/s"), std::string::npos) << text;
}

TEST(Progress, ShowsTheNewestOfReportsThatComeTogether) {
  const test::Terminal terminal;
  LineWriter out(terminal.program_end());
  Progress progress(out);
  progress.started({});
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  for (const int64_t step : {1, 2, 3}) progress.stepped({.step = step, .seconds = 1, .is_newest = step == 3});
  const std::string text = terminal.read();
  EXPECT_NE(text.find("step 3/"), std::string::npos) << text;
  EXPECT_EQ(text.find("step 1/"), std::string::npos) << text;
}

TEST_F(TrainLenet, LossesDependOnSeedAndDataAlone) {
  const std::vector<std::string> few = {"--iterations", "15", "--ema-decay", "0.9"};
  const auto with = [&few](std::vector<std::string> more) {
    more.insert(more.begin(), few.begin(), few.end());
    return more;
  };
  const auto first = train(with({}));
  ASSERT_EQ(first.size(), 15);
  EXPECT_EQ(train(with({})), first);
  for (const char* threads : {"0", "2", "3"}) EXPECT_EQ(train(with({"--loader-threads", threads})), first) << threads;
  EXPECT_NE(train(with({"--seed", "2"})), first);
  EXPECT_NE(train(with({"--no-shuffle"})), first);
}

TEST_F(TrainLenet, EveryRecipeTrains) {
  const std::vector<std::vector<std::string>> recipes = {
      {"--optimizer", "sgd"},
      {"--optimizer", "nesterov", "--lr-schedule", "cosine", "--warmup", "2"},
      {"--optimizer", "adam", "--lr", "0.001", "--clip-norm", "1"},
      {"--optimizer", "adamw", "--lr", "0.001", "--weight-decay", "0.01"},
      {"--lr-schedule", "poly", "--weight-decay", "0.0005"},
      {"--lr-schedule", "step", "--lr-steps", "3,6"},
      {"--label-smoothing", "0.1", "--precision", "bf16"},
  };
  std::set<std::map<int64_t, double>> found;
  for (auto recipe : recipes) {
    recipe.insert(recipe.end(), {"--iterations", "8"});
    found.insert(train(recipe));
  }
  EXPECT_EQ(found.size(), recipes.size()) << "a flag without effect";
}

TEST_F(TrainLenet, FollowsTheSchedule) {
  train({"--iterations", "4", "--lr-schedule", "poly"});
  std::vector<double> rates;
  for (const auto& event : read_log(place("train.jsonl")))
    if (event["event"] == "step") rates.push_back(event["lr"]);
  ASSERT_EQ(rates.size(), 4);
  for (int t = 0; t < 4; ++t) EXPECT_DOUBLE_EQ(rates[static_cast<size_t>(t)], 0.01 * std::sqrt(1 - t / 4.0));
}

TEST_F(TrainLenet, LowersTheRateAfterSharesOfTheRun) {
  train({"--iterations", "6", "--lr-schedule", "step", "--lr-steps", "0.5,0.75"});
  std::vector<double> rates;
  for (const auto& event : read_log(place("train.jsonl")))
    if (event["event"] == "step") rates.push_back(event["lr"]);
  ASSERT_EQ(rates.size(), 6);
  for (size_t t = 0; t < 6; ++t) EXPECT_NEAR(rates[t], t < 3 ? 0.01 : t < 5 ? 1e-3 : 1e-4, 1e-12) << t;
}

}  // namespace
}  // namespace tern
