#include "tern/networks/extreme.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tern/core/safetensors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/log.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using networks::ExtremeClassifier;

/// PyTorch's values. tests/golden/make_extreme.py writes them.
class ExtremeGolden : public testing::TestWithParam<int64_t> {};

TEST_P(ExtremeGolden, AgreesWithPyTorch) {
  const StateDict golden = read_safetensors(TERN_GOLDEN_DIR "/extreme.safetensors").tensors;
  for (const DType dtype : {DType::f64, DType::f32}) {
    SCOPED_TRACE(to_string(dtype));
    const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
    const Shape input = golden.at("input.weight").shape(), output = golden.at("output.weight").shape();
    ExtremeClassifier model({.features = input[0], .hidden = input[1], .labels = output[0], .chunk = GetParam()});
    model.initialize(1, dtype);
    for (const auto& [name, parameter] : model.parameters()) parameter->set_value(golden.at(name).to(dtype));
    const SparseRows features = {golden.at("features"), golden.at("features.offsets"), golden.at("features.values")},
                     labels = {golden.at("labels"), golden.at("labels.offsets"), {}};
    const auto [loss, top] = model(features, labels, dtype);
    EXPECT_NEAR(loss.value().item(), golden.at("loss").item(), tolerance);
    EXPECT_EQ(top.to_vector<int64_t>(), golden.at("top").to_vector<int64_t>());
    loss.backward();
    for (const auto& [name, parameter] : model.parameters()) {
      SCOPED_TRACE(name);
      EXPECT_EQ(parameter->row_gradient().defined(), name == "input.weight");
      expect_values(parameter->gradient(), golden.at(name + "/gradient").to_vector<double>(), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chunks, ExtremeGolden, testing::Values(1, 7, 33, 8192));

TEST(ExtremeClassifier, EveryTensorIsCutByItsNeurons) {
  ExtremeClassifier model({.features = 9, .hidden = 8, .labels = 7});
  model.initialize(1);
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
  EXPECT_EQ(cuts.widths(), (std::vector<int64_t>{8}));
  for (const auto& [name, tensor] : model.state()) {
    if (name != "norm.num_batches_tracked") {
      EXPECT_NE(cuts.find(name), nullptr) << name;
    }
  }
  EXPECT_TRUE(model.subnet_plan(SubnetScope::filters).layers.empty());
}

// The logits of the whole model are the mean of those of its subnets. Both subnets are alike here, so all are equal.
TEST(LinearCrossEntropyLayer, ASubnetHasLogitsOfTheSameSize) {
  const Tensor part = Tensor::from<float>({3, 2}, std::vector<float>{1, 2, -3, 0.5f, 4, 1}),
               twice = Tensor::from<float>({3, 4}, std::vector<float>{1, 2, 1, 2, -3, 0.5f, -3, 0.5f, 4, 1, 4, 1}),
               x = Tensor::from<float>({1, 2}, std::vector<float>{0.3f, -0.2f}),
               x_twice = Tensor::from<float>({1, 4}, std::vector<float>{0.3f, -0.2f, 0.3f, -0.2f}),
               labels = Tensor::from<int64_t>({1}, std::vector<int64_t>{1}),
               offsets = Tensor::from<int64_t>({2}, std::vector<int64_t>{0, 1});
  LinearCrossEntropy layer({.in = 4, .classes = 3});
  layer.initialize(1);
  layer.weight.set_value(twice);
  const double whole = layer(x_twice, labels, offsets).loss.value().item();
  layer.weight.set_value(part);
  EXPECT_NEAR(layer(x, labels, offsets).loss.value().item(), whole, 1e-6);
}

TEST(Precision, CountsHitsAmongTheBestLabels) {
  const Tensor top =
      Tensor::from<int64_t>({3, 5}, std::vector<int64_t>{4, 0, 2, 9, 1, 7, 6, 5, 8, 3, -1, -1, -1, -1, -1});
  const SparseRows labels = {Tensor::from<int64_t>({4}, std::vector<int64_t>{4, 1, 9, 5}),
                             Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 3, 4, 4}),
                             {}};
  const auto found = networks::precision_at_135(top, labels);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].numerator, 1);
  EXPECT_EQ(found[0].denominator, 3);
  EXPECT_EQ(found[1].numerator, 2);
  EXPECT_EQ(found[1].denominator, 9);
  EXPECT_EQ(found[2].numerator, 4);
  EXPECT_EQ(found[2].denominator, 15);
}

/// Runs train_extreme on a small drawn set: 500 inputs, 300 labels, 2,000 samples.
class TrainExtreme : public testing::Test {
 protected:
  static Outcome run(const std::vector<std::string>& more) {
    std::vector<std::string> words = {built_program("train_extreme"), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  /// The last event of a run's log.
  nlohmann::json train(const std::vector<std::string>& more) const {
    const std::string log = (folder_.path() / "log.jsonl").string();
    std::vector<std::string> words = {"--inputs",     "500",      "--labels", "300",          "--samples",
                                      "2000",         "--hidden", "64",       "--batch-size", "64",
                                      "--iterations", "90",       "--quiet",  "--log",        log};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(log).back();
  }
  TemporaryFolder folder_;
};

// The most frequent label alone has a precision at 1 of about 15 %.
TEST_F(TrainExtreme, LearnsAloneInParallelAndAsSubnetsSlow) {
  const std::vector<std::vector<std::string>> kinds = {{},
                                                       {"--optimizer", "momentum", "--lr", "0.2"},
                                                       {"--optimizer", "adam", "--lr", "0.01"},
                                                       {"--workers", "2"},
                                                       {"--workers", "2", "--codec", "qsgd:bits=8"},
                                                       {"--workers", "2", "--method", "local-sgd"},
                                                       {"--workers", "2", "--method", "ist"}};
  for (const auto& kind : kinds) {
    std::string name;
    for (const std::string& word : kind) name += word + " ";
    const auto done = train(kind);
    EXPECT_GT(done.at("precision_at_1"), 0.4) << name;
    EXPECT_GT(done.at("precision_at_3"), 0.25) << name;
    EXPECT_GT(done.at("precision_at_5"), 0.2) << name;
    EXPECT_LT(done.at("loss"), 4.5) << name;
  }
}

TEST_F(TrainExtreme, ReadsFilesAndNamesDamagedLines) {
  write_file(folder_.path() / "train.txt", "4 3 5\n0,4 0:1 2:0.5\n1 1:2\n 0:1\n2 2:1\n");
  write_file(folder_.path() / "test.txt", "2 3 5\n0 0:1\n1 1:2\n");
  const std::vector<std::string> words = {"--data", "extreme-file", "--data-dir", folder_.path().string(), "--hidden",
                                          "4",      "--batch-size", "2",          "--iterations",          "2"};
  const Outcome good = run(words);
  EXPECT_EQ(good.code, 0) << good.err;
  auto with_labels = words;
  with_labels.insert(with_labels.end(), {"--labels", "7"});
  const Outcome refused = run(with_labels);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--labels: found with --data extreme-file, whose first line has this number"),
            std::string::npos)
      << refused.err;
  write_file(folder_.path() / "test.txt", "2 3 5\n0 0:1\n1 3:2\n");
  const Outcome damaged = run(words);
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("test.txt: line 3: found '3:2', expected FEATURE:VALUE with a feature from 0 to 2"),
            std::string::npos)
      << damaged.err;
}

}  // namespace
}  // namespace tern
