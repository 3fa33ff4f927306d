#include <gtest/gtest.h>
#include <unistd.h>

#include "tern/networks/mlp.h"
#include "tern/trainer/run/trainer.h"
#include "tests/dist/comm/nccl.h"
#include "tests/support/log.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

using namespace trainer;

/// Two ranks of one process, with a device each, that train over NCCL.
class NcclCudaWholeStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = test::why_no_nccl(2); !missing.empty()) GTEST_SKIP() << missing;
    settings_.data = "digits";
    settings_.batch_size = 16;
    settings_.iterations = 14;
    settings_.eval_every = 9;
    settings_.threads = 1;
    settings_.workers = 2;
    settings_.transport = RankTransport::nccl;
    settings_.deterministic = true;
    settings_.quiet = true;
    settings_.codec = "ternary";
    settings_.ema_decay = 0.9;
    settings_.check_every = 5;
  }
  std::string place(const std::string& name) const { return folder_.path() / name; }
  /// Trains, and returns what each rank threw.
  std::vector<std::string> train(const TrainSettings& settings) const {
    const Application application = {.name = "test", .model = [](const ModelSpec& spec) -> std::unique_ptr<Layer> {
                                       return std::make_unique<networks::Mlp>(networks::Mlp::Options{
                                           .widths = {spec.images.numel(), 8, 10}, .norm = networks::MlpNorm::none});
                                     }};
    const InterruptGuard interrupt;
    LineWriter out(STDOUT_FILENO);
    return test::with_nccl(make_in_process(2), {}, [&](Communicator& c) {
      TrainSettings own = settings;
      own.device = join({"cuda:", c.rank()});
      const RunData data = load_run_data(own);
      Trainer(application, own, {.data = data, .interrupt = interrupt, .out = out, .communicator = &c}).train();
    });
  }
  /// The events of a run, without times and memory. Adds the seconds of encoding of each step to `encode`.
  std::vector<nlohmann::json> events(TrainSettings settings, std::vector<double>* encode = nullptr) const {
    settings.log = place("log");
    EXPECT_EQ(train(settings), std::vector<std::string>(2));
    std::vector<nlohmann::json> found;
    for (nlohmann::json& event : read_log(settings.log)) {
      if (event["event"] == "step" && encode != nullptr) encode->push_back(event["encode_seconds"]);
      for (const char* key :
           {"seconds", "images_per_second", "data_wait", "peak_memory", "peak_device_memory", "encode_seconds",
            "decode_seconds", "wait_seconds", "compute_seconds", "largest_peak_memory"})
        event.erase(key);
      if (event["event"] != "start") found.push_back(event);
    }
    return found;
  }

  TrainSettings settings_;
  TemporaryFolder folder_;
};

TEST_F(NcclCudaWholeStep, IsTheSameAsOneByOneAndEncodesOnlyInItsReplay) {
  TrainSettings one_by_one = settings_;
  one_by_one.cuda_graph = false;
  std::vector<double> encode;
  const auto found = events(settings_, &encode);
  EXPECT_EQ(found, events(one_by_one));
  for (const auto& event : found) EXPECT_NE(event["event"], "note") << event;
  EXPECT_EQ(encode.size(), 14u);
  EXPECT_GT(encode.front(), 0);
  for (size_t step = 6; step < encode.size(); ++step) EXPECT_EQ(encode[step], 0) << step;
}

TEST_F(NcclCudaWholeStep, GoesOnAfterACheckpoint) {
  const auto whole = events(settings_);
  TrainSettings part = settings_;
  part.checkpoint = place("run");
  part.iterations = 7;
  events(part);
  part.iterations = 14;
  part.resume = true;
  const auto resumed = events(part);
  EXPECT_EQ(resumed.back()["loss"], whole.back()["loss"]);
}

TEST_F(NcclCudaWholeStep, SaysWhereItDiverged) {
  settings_.lr = 1e30;
  settings_.codec = "none";
  const auto errors = train(settings_);
  for (const std::string& error : errors) EXPECT_TRUE(test::names(error, "the loss is")) << error;
}

}  // namespace
}  // namespace tern
