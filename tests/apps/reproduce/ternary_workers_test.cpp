#include "tern/apps/reproduce/ternary_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/gradient_census.h"
#include "tern/apps/reproduce/run_settings.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/core/random.h"
#include "tern/networks/lenet.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/run/recipe.h"
#include "tests/support/file_bytes.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// An application with the name and the default model of train_lenet.
Application lenet_application() {
  return {.name = "train_lenet",
          .model = [](const ModelSpec&) -> std::unique_ptr<Layer> { return std::make_unique<networks::LeNet>(); }};
}

std::vector<double> losses_of(const std::string& log) {
  std::vector<double> losses;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (const auto event = nlohmann::json::parse(line); event["event"] == "step") losses.push_back(event["loss"]);
  return losses;
}

TEST(TernaryWorkers, TakeTheStepsOfAsManyRanksSlow) {
  const TemporaryFolder folder;
  const std::string log = folder.path() / "log.jsonl";
  std::vector<std::string> flags = {"--iterations", "6", "--batch-size", "32", "--threads", "1"};
  const auto more = ternary_flags(2);
  flags.insert(flags.end(), more.begin(), more.end());
  std::vector<std::string> program = {built_program("train_lenet"), "--quiet", "--log", log};
  program.insert(program.end(), flags.begin(), flags.end());
  const Outcome outcome = run_program(program);
  ASSERT_EQ(outcome.code, 0) << outcome.err;

  const Application application = lenet_application();
  TrainSettings settings = settings_of(networks::lenet(), {.name = "run", .flags = flags});
  prepare_machine(settings);
  TernaryWorkers workers(application, settings);
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i) losses.push_back(workers.step([](const std::string&, const GradientStages&) {}));
  EXPECT_EQ(losses, losses_of(read_file(log)));
}

TEST(TernaryWorkers, ShowGradientsOnTheirWay) {
  const Application application = lenet_application();
  std::vector<std::string> flags = {"--iterations", "1", "--batch-size", "32"};
  const auto more = ternary_flags(4);
  flags.insert(flags.end(), more.begin(), more.end());
  TernaryWorkers workers(application, settings_of(networks::lenet(), {.name = "run", .flags = flags}));
  int seen = 0;
  workers.step([&](const std::string& name, const GradientStages& stages) {
    ++seen;
    const auto original = stages.original.span<float>(), clipped = stages.clipped.span<float>(),
               ternary = stages.ternary.span<float>(), averaged = stages.averaged.span<float>();
    const float quarter = stages.scaler / 4;
    for (size_t i = 0; i < original.size(); ++i) {
      ASSERT_LE(std::abs(clipped[i]), stages.scaler) << name;
      ASSERT_GE(std::abs(original[i]), std::abs(clipped[i])) << name;
      ASSERT_TRUE(ternary[i] == 0 || std::abs(ternary[i]) == stages.scaler) << name;
      ASSERT_GE(ternary[i] * original[i], 0) << name << ": a sign has changed";
      ASSERT_NEAR(averaged[i] / quarter, std::round(averaged[i] / quarter), 1e-5) << name;
    }
    ASSERT_LE(count_levels(stages.averaged), 9) << name;
  });
  EXPECT_EQ(seen, 8);
}

TEST(GradientCensus, CountsKnownVectors) {
  const Tensor values = Tensor::from({4}, std::vector<float>{-0.9f, 0.0f, 0.1f, 7.0f});
  EXPECT_EQ(histogram(values, 1, 1.5, 3), (std::vector<double>{0.25, 0.5, 0.25}));
  EXPECT_EQ(share_of_zeros(values), 0.25);
  EXPECT_EQ(count_levels(values), 4);
  const ClippingLoss loss =
      clipping_loss(Tensor::from({2}, std::vector<float>{3, 4}), Tensor::from({2}, std::vector<float>{3, 3}));
  EXPECT_NEAR(loss.length, 1 - std::sqrt(18.0) / 5, 1e-12);
  EXPECT_NEAR(loss.degrees, (std::atan2(4, 3) - std::atan2(3, 3)) * 180 / std::numbers::pi, 1e-9);
}

TEST(GradientCensus, KnowsWhatClippingTakesFromNormalValues) {
  const RandomStream stream({.seed = 7});
  std::vector<float> drawn(1 << 18), cut;
  for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = stream.normal(i);
  for (const float x : drawn) cut.push_back(std::clamp(x, -2.5f, 2.5f));
  const Tensor values = Tensor::from({1 << 18}, drawn), clipped = Tensor::from({1 << 18}, cut);
  const ClippingLoss measured = clipping_loss(values, clipped), known = normal_clipping_loss(2.5);
  EXPECT_NEAR(measured.length, known.length, 0.02 * known.length);
  EXPECT_NEAR(measured.degrees, known.degrees, 0.02 * known.degrees);
  EXPECT_NEAR(kurtosis(values), 3, 0.05);
}

TEST(BlockMeans, KeepTheMeanOfEveryBlock) {
  const std::vector<double> values = {1, 3, 5, 7, 9};
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(block_means(values, 3), (Points{{2, 2}, {4, 6}, {5, 9}}));
  EXPECT_EQ(block_means(values, 50).size(), 5);
  EXPECT_TRUE(block_means({}, 3).empty());
}

}  // namespace
}  // namespace tern::reproduce
