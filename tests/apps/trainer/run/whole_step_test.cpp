#include "tests/apps/trainer/run/whole_step.h"

#include <cmath>

#include "tern/kernels/recording.h"

namespace tern::test {
namespace {

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

/// Cannot be recorded on the second device.
struct MlpOfItsOwnWill final : Layer {
  explicit MlpOfItsOwnWill(const ModelSpec& spec)
      : mlp(add<networks::Mlp>(
            "mlp", networks::Mlp::Options{.widths = {spec.images.numel(), 8, 10}, .norm = networks::MlpNorm::none})) {}
  Variable forward(const Variable& x) override {
    check(!is_recording() || x.value().device().index != 1, "this layer has a will of its own");
    return mlp(x);
  }
  networks::Mlp& mlp;
};

TEST_F(NcclCudaWholeStep, IsRecordedByAllRanksOrByNone) {
  model_ = [](const ModelSpec& spec) { return std::make_unique<MlpOfItsOwnWill>(spec); };
  std::vector<double> encode;
  const auto found = events(settings_, &encode);
  const auto note = std::ranges::find(found, "note", [](const auto& event) { return event["event"]; });
  ASSERT_NE(note, found.end());
  EXPECT_TRUE(names((*note)["text"], "none could be recorded: another rank could not record its step")) << *note;
  for (const double seconds : encode) EXPECT_GT(seconds, 0);
}

TEST_F(NcclCudaWholeStep, MustBeTheSameOnAllRanks) {
  const auto errors = train(settings_, [](TrainSettings& own, int rank) { own.cuda_graph = rank == 0; });
  for (const std::string& error : errors) EXPECT_TRUE(names(error, "exchange in the CUDA graph")) << error;
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
  for (const int64_t every : {1, 8}) {
    settings_.log_every = every;
    for (const std::string& error : train(settings_)) EXPECT_TRUE(names(error, "the loss is nan at step 2;")) << error;
  }
}

/// Gives NaN on the second device.
struct MlpOfOneBadRank final : Layer {
  explicit MlpOfOneBadRank(const ModelSpec& spec)
      : mlp(add<networks::Mlp>(
            "mlp", networks::Mlp::Options{.widths = {spec.images.numel(), 8, 10}, .norm = networks::MlpNorm::none})) {}
  Variable forward(const Variable& x) override { return scale(mlp(x), x.value().device().index == 1 ? NAN : 1); }
  networks::Mlp& mlp;
};

// From step 2 on, the means have broken rank 0, too.
TEST_F(NcclCudaWholeStep, LetsTheRankThatDivergedFirstNameItsStep) {
  model_ = [](const ModelSpec& spec) { return std::make_unique<MlpOfOneBadRank>(spec); };
  settings_.codec = "none";
  for (const int64_t every : {1, 4}) {
    settings_.log_every = every;
    const auto errors = train(settings_);
    EXPECT_TRUE(names(errors[0], "rank 1 has left")) << errors[0];
    EXPECT_TRUE(names(errors[1], "the loss is nan at step 1;")) << errors[1];
  }
}

TEST_F(NcclCudaWholeStep, HasTheSameLossesIfTheyAreReadTogether) {
  const auto found = events(settings_);
  settings_.log_every = 4;
  EXPECT_EQ(events(settings_), found);
}

}  // namespace
}  // namespace tern::test
