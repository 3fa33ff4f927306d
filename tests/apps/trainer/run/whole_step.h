#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "tern/networks/mlp.h"
#include "tern/trainer/run/trainer.h"
#include "tests/dist/comm/nccl.h"
#include "tests/support/log.h"
#include "tests/support/temporary_folder.h"

namespace tern::test {

using namespace trainer;

/// Two ranks of one process, with a device each, that train over NCCL.
class NcclCudaWholeStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_nccl(2); !missing.empty()) GTEST_SKIP() << missing;
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
  static std::unique_ptr<Layer> mlp(const ModelSpec& spec) {
    return std::make_unique<networks::Mlp>(
        networks::Mlp::Options{.widths = {spec.images.numel(), 8, 10}, .norm = networks::MlpNorm::none});
  }
  /// Trains, and returns what each rank threw.
  std::vector<std::string> train(const TrainSettings& settings,
                                 const std::function<void(TrainSettings&, int rank)>& change = {}) const {
    const Application application = {.name = "test", .model = model_};
    const InterruptGuard interrupt;
    LineWriter out(STDOUT_FILENO);
    return with_nccl(make_in_process(2), {}, [&](Communicator& c) {
      TrainSettings own = settings;
      own.device = join({"cuda:", c.rank()});
      if (change) change(own, c.rank());
      const RunData data = load_run_data(own);
      Trainer(application, own, {.data = data, .interrupt = interrupt, .out = out, .communicator = &c}).train();
    });
  }
  /// The events of a run, without times, memory and overhead (ranks agree that they have recorded a step). Adds the
  /// seconds of encoding of each step to `encode`.
  std::vector<nlohmann::json> events(TrainSettings settings, std::vector<double>* encode = nullptr) const {
    settings.log = place("log");
    EXPECT_EQ(train(settings), std::vector<std::string>(2));
    std::vector<nlohmann::json> found;
    for (nlohmann::json& event : read_log(settings.log)) {
      if (event["event"] == "step" && encode != nullptr) encode->push_back(event["encode_seconds"]);
      for (const char* key : {"seconds", "images_per_second", "data_wait", "peak_memory", "peak_device_memory",
                              "encode_seconds", "decode_seconds", "wait_seconds", "compute_seconds",
                              "largest_peak_memory", "bytes_sent_overhead", "bytes_ratio_float_ring"})
        event.erase(key);
      if (event["event"] != "start") found.push_back(event);
    }
    return found;
  }

  TrainSettings settings_;
  std::function<std::unique_ptr<Layer>(const ModelSpec&)> model_ = mlp;
  TemporaryFolder folder_;
};

}  // namespace tern::test
