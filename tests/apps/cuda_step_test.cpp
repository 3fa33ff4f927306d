#include "tests/apps/train_lenet.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

/// Trains a narrow network with batch normalisation on a CUDA device.
class CudaStep : public TrainLenet {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
  std::vector<std::string> words_on(const std::string& device, std::vector<std::string> more) const {
    more.insert(more.begin(), {built_program("train_mlp"), "--data", "mnist", "--data-dir", data_.string(), "--threads",
                               "1", "--hidden", "8", "--batch-size", "16", "--device", device});
    if (device != "cpu") more.push_back("--deterministic");
    return more;
  }
  Outcome run_on(const std::string& device, const std::vector<std::string>& more) const {
    return run_program(words_on(device, more));
  }
  Outcome run_on_cuda(const std::vector<std::string>& more) const { return run_on("cuda", more); }
  /// The step, evaluation and done events of a run, without times and peak memory.
  std::vector<nlohmann::json> events(std::vector<std::string> more, const std::string& device = "cuda") const {
    const std::string log = place("train.jsonl");
    more.insert(more.end(), {"--log", log, "--quiet"});
    const Outcome outcome = run_on(device, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<nlohmann::json> found;
    for (auto& event : read_log(log)) {
      for (const char* key : {"seconds", "images_per_second", "data_wait", "peak_memory", "peak_device_memory"})
        event.erase(key);
      if (event["event"] != "start") found.push_back(event);
    }
    return found;
  }
};

TEST_F(CudaStep, AsAGraphIsTheSameAsOneByOne) {
  const std::vector<std::vector<std::string>> runs = {
      {"--epochs", "2", "--optimizer", "nesterov", "--lr-schedule", "step", "--lr-steps", "0.5"},
      {"--iterations", "17", "--optimizer", "adam", "--lr-schedule", "cosine", "--lr", "0.002", "--clip-norm", "0.5",
       "--histograms", "7"},
      {"--iterations", "14", "--optimizer", "muon", "--lr-schedule", "poly", "--lr-power", "1", "--group",
       "*.bias:rule=nesterov,lr=0.1,until=0.5"},
      {"--iterations", "14", "--optimizer", "adamw", "--weight-decay", "0.1", "--ema-decay", "0.9", "--precision",
       "bf16", "--eval-every", "5"}};
  for (const auto& flags : runs) {
    SCOPED_TRACE(testing::PrintToString(flags));
    auto one_by_one = flags;
    one_by_one.push_back("--no-cuda-graph");
    const auto found = events(flags);
    EXPECT_EQ(found, events(one_by_one));
    for (const auto& event : found) {
      EXPECT_NE(event["event"], "note") << event;
      if (event["event"] == "step") {
        EXPECT_GT(event["gradient_norm"], 0);
      } else if (event["event"] == "histograms") {
        EXPECT_EQ(event["gradients"].size(), event["weights"].size());
      }
    }
  }
}

// What comes before the exchange is the graph. Evaluations put the model of local methods into other memory.
TEST_F(CudaStep, OfSeveralRanksAsAGraphIsTheSameAsOneByOne) {
  const std::vector<std::vector<std::string>> runs = {
      {"--codec", "ternary", "--exchange", "reduce-scatter", "--ema-decay", "0.9", "--histograms", "5"},
      {"--method", "local-sgd", "--local-steps", "3", "--eval-every", "7", "--precision", "bf16"}};
  const auto without_times = [this](const std::vector<std::string>& flags) {
    auto found = events(flags);
    for (auto& event : found)
      for (const char* key : {"encode_seconds", "decode_seconds", "wait_seconds", "compute_seconds",
                              "bytes_sent_overhead", "bytes_ratio_float_ring", "largest_peak_memory"})
        event.erase(key);
    return found;
  };
  for (const auto& flags : runs) {
    SCOPED_TRACE(testing::PrintToString(flags));
    auto graph = flags;
    graph.insert(graph.end(), {"--workers", "2", "--transport", "socket", "--iterations", "11"});
    auto one_by_one = graph;
    one_by_one.push_back("--no-cuda-graph");
    const auto found = without_times(graph);
    EXPECT_EQ(found, without_times(one_by_one));
    for (const auto& event : found) EXPECT_NE(event["event"], "note") << event;
  }
}

// DeMo steps by signs, and a sum in another order can turn the sign of a number near 0. Its small rate keeps the losses
// near each other.
TEST_F(CudaStep, OfEachMethodHasTheCpusLosses) {
  const std::vector<std::vector<std::string>> methods = {
      {"--method", "data-parallel", "--codec", "ternary"},
      {"--method", "data-parallel", "--exchange", "powersgd:rank=2,start=1"},
      {"--method", "local-sgd", "--local-steps", "2"},
      {"--method", "diloco", "--local-steps", "2"},
      {"--method", "sparseloco", "--local-steps", "2"},
      {"--method", "noloco", "--local-steps", "2"},
      {"--method", "demo", "--optimizer", "sgd", "--lr", "0.001"},
      {"--method", "ist", "--local-steps", "2"},
      {"--method", "ist", "--local-steps", "2", "--exchange", "coordinator", "--ist-momentum", "travel"},
      {"--method", "ist", "--local-steps", "2", "--codec", "qsgd:bits=8"}};
  for (const auto& method : methods) {
    SCOPED_TRACE(testing::PrintToString(method));
    auto flags = method;
    flags.insert(flags.end(), {"--workers", "2", "--iterations", "5"});
    const auto found = events(flags), expected = events(flags, "cpu");
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i]["event"], expected[i]["event"]);
      if (found[i].contains("loss")) {
        EXPECT_NEAR(found[i]["loss"], expected[i]["loss"], 1e-3) << i;
      }
      if (found[i].contains("bytes_sent_payload")) {
        EXPECT_EQ(found[i]["bytes_sent_payload"], expected[i]["bytes_sent_payload"]) << i;
      }
    }
  }
}

// That one of the ranks stops, they learn from the sums of a step, and the next step is under way then.
TEST_F(CudaStep, OfSeveralRanksStopsAfterOneStepAndGoesOn) {
  const std::vector<std::string> recipe = {"--workers", "2", "--codec", "ternary", "--iterations", "24"};
  const auto losses_of = [&](const std::string& log) { return losses(place(log)); };
  const auto with = [&](const std::string& log, std::vector<std::string> more) {
    more.insert(more.begin(), recipe.begin(), recipe.end());
    more.insert(more.end(), {"--log", place(log), "--quiet", "--checkpoint", place(log + " kept")});
    return words_on("cuda", more);
  };
  EXPECT_EQ(run_program(with("whole", {})).code, 0);
  Process process(with("parts", {}));
  wait_for_lines(place("parts"), 7);
  process.send(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const size_t done = losses_of("parts").size();
  EXPECT_LT(done, 24u);
  EXPECT_NE(outcome.err.find("interrupted after step " + std::to_string(done)), std::string::npos) << outcome.err;
  EXPECT_EQ(run_program(with("parts", {"--resume"})).code, 0);
  EXPECT_EQ(losses_of("parts"), losses_of("whole"));
}

// The loss of step 2 is finite, and its gradients are too large for the code. The step has ended when that is known.
TEST_F(CudaStep, OfSeveralRanksNamesAGradientThatHasNoCodeAndKeepsNothing) {
  for (const char* iterations : {"2", "20"}) {
    const Outcome outcome =
        run_on_cuda({"--workers", "2", "--codec", "fp16", "--exchange", "allgather", "--norm", "none", "--lr", "1e6",
                     "--iterations", iterations, "--checkpoint", place("ck"), "--save", place("model"), "--quiet"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("gradient of 'layers."), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("or reaches beyond what fp16 holds"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(place("model")));
    EXPECT_FALSE(std::filesystem::exists(place("ck/step-00000002.tern")));
  }
}

TEST_F(CudaStep, AsAGraphGoesOnAfterACheckpoint) {
  const auto whole = events({"--iterations", "16"});
  const std::vector<std::string> kept = {"--checkpoint", place("ck"), "--checkpoint-every", "7"};
  auto half = kept, rest = kept;
  half.insert(half.end(), {"--iterations", "9"});
  rest.insert(rest.end(), {"--iterations", "16", "--resume"});
  events(half);
  const auto resumed = events(rest);
  ASSERT_FALSE(resumed.empty());
  EXPECT_EQ(resumed.back()["loss"], whole.back()["loss"]);
  EXPECT_EQ(resumed.back()["accuracy"], whole.back()["accuracy"]);
}

TEST_F(CudaStep, AsAGraphSaysWhereItDiverged) {
  const Outcome outcome = run_on_cuda({"--iterations", "40", "--lr", "1e30", "--norm", "none", "--quiet"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("the loss is"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("a smaller --lr may help"), std::string::npos) << outcome.err;
}

TEST_F(CudaStep, SaysWhyItIsNoGraph) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--workers", "2", "--transport", "socket"}}) {
    auto flags = more;
    flags.insert(flags.end(), {"--iterations", "6"});
    setenv("TERN_CUDA_SYNC", "1", 1);
    const Outcome outcome = run_on_cuda(flags);
    unsetenv("TERN_CUDA_SYNC");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(
        outcome.out.find("note: steps run operation by operation, since none could be recorded: record: TERN_CUDA"),
        std::string::npos)
        << outcome.out;
  }
}

/// Trains a network with convolutions on a CUDA device.
class CudaLenet : public TrainLenet {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
  std::map<int64_t, double> losses_on(const std::string& device, std::vector<std::string> more) const {
    more.insert(more.end(), {"--device", device});
    if (device != "cpu") more.push_back("--deterministic");
    return train(more);
  }
};

TEST_F(CudaLenet, AsAGraphIsTheSameAsOneByOne) {
  for (const char* precision : {"fp32", "bf16"}) {
    const std::vector<std::string> flags = {"--iterations", "4",       "--batch-size", "8",
                                            "--precision",  precision, "--optimizer",  "momentum"};
    auto one_by_one = flags;
    one_by_one.push_back("--no-cuda-graph");
    EXPECT_EQ(losses_on("cuda", flags), losses_on("cuda", one_by_one)) << precision;
  }
}

// The filters of a GPU are channels-last, and those of a checkpoint row-major.
TEST_F(CudaLenet, GoesOnOnTheOtherDeviceFromACheckpoint) {
  const std::vector<std::string> all = {"--optimizer", "momentum", "--iterations", "6"};
  const auto whole = losses_on("cpu", all);
  for (const auto& [first, second] : {std::pair("cuda", "cpu"), std::pair("cpu", "cuda")}) {
    const std::vector<std::string> kept = {"--optimizer", "momentum", "--checkpoint", place(first)};
    auto half = kept, rest = kept;
    half.insert(half.end(), {"--iterations", "3"});
    rest.insert(rest.end(), {"--iterations", "6", "--resume"});
    losses_on(first, half);
    const auto resumed = losses_on(second, rest);
    ASSERT_TRUE(resumed.contains(5)) << second;
    for (const auto& [step, loss] : resumed) EXPECT_NEAR(loss, whole.at(step), 1e-3) << second << ", step " << step;
  }
}

}  // namespace
}  // namespace tern
