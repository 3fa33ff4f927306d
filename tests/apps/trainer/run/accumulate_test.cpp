#include <cmath>

#include "tern/core/safetensors.h"
#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

class TrainLenetAccumulate : public TrainLenet {
 protected:
  /// Trains eight steps of 32 samples, more than an epoch, with `more`. Returns the losses.
  std::map<int64_t, double> train_steps(std::vector<std::string> more) const {
    more.insert(more.end(), {"--iterations", "8", "--save", place("model"), "--optimizer", "momentum"});
    return train(more);
  }
  /// The greatest difference between two saved models, in parts of the greatest value of each tensor.
  static double difference(const SafetensorsFile& a, const SafetensorsFile& b) {
    double greatest = 0;
    for (const auto& [name, tensor] : a.tensors) {
      const auto left = tensor.to_vector<float>(), right = b.tensors.at(name).to_vector<float>();
      double scale = 0;
      for (const float value : left) scale = std::max(scale, std::abs(static_cast<double>(value)));
      for (size_t i = 0; i < left.size(); ++i)
        greatest = std::max(greatest, std::abs(static_cast<double>(left[i]) - right[i]) / scale);
    }
    return greatest;
  }
};

TEST_F(TrainLenetAccumulate, IsOneBatchOfAllItsSamples) {
  for (const std::vector<std::string>& ranks : {std::vector<std::string>{}, {"--workers", "2"}}) {
    const auto whole = train_steps(over(ranks, {"--batch-size", "32"}));
    const auto model = read_safetensors(place("model"));
    const auto payload = read_log(place("train.jsonl")).back().value("bytes_sent_payload", 0);
    const auto parts = train_steps(over(ranks, {"--batch-size", "8", "--accumulate", "4"}));
    ASSERT_EQ(parts.size(), 8);
    for (const auto& [step, loss] : parts) EXPECT_NEAR(loss, whole.at(step), 1e-5 * whole.at(step)) << step;
    EXPECT_LT(difference(model, read_safetensors(place("model"))), 1e-5);
    const auto events = read_log(place("train.jsonl"));
    EXPECT_EQ(events.back().value("bytes_sent_payload", 0), payload) << "gradients travel once for each update";
    EXPECT_EQ(events.front()["steps_per_epoch"], 200 / 8 / 4);
  }
}

TEST_F(TrainLenetAccumulate, ResumesWithinAnEpoch) {
  const std::vector<std::string> recipe = {"--batch-size", "8", "--accumulate", "3"};
  train_steps(over({"--checkpoint", place("run"), "--checkpoint-every", "5"}, recipe));
  const std::string unbroken = read_file(place("model"));
  int resumed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place("run"))) {
    if (entry.path().extension() != ".tern") continue;
    const std::string folder = place("again" + std::to_string(++resumed));
    std::filesystem::create_directory(folder);
    std::filesystem::copy(entry.path(), folder);
    auto again = over({"--checkpoint", folder}, recipe);
    again.emplace_back("--resume");
    train_steps(again);
    EXPECT_EQ(read_file(place("model")), unbroken) << entry.path();
  }
  EXPECT_EQ(resumed, 2);
}

TEST_F(TrainLenetAccumulate, RefusesToSendEarly) {
  const Outcome outcome =
      run({"--workers", "2", "--transport", "socket", "--overlap", "--accumulate", "2", "--iterations", "1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--accumulate and --overlap contradict each other"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace tern
