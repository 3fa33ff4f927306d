#include "tern/core/safetensors.h"
#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

TEST_F(TrainLenet, SavesTheInitialWeightsInPyTorchsLayout) {
  ASSERT_EQ(run({"--iterations", "0", "--save", place("model"), "--quiet"}).code, 0);
  const SafetensorsFile file = read_safetensors(place("model"));
  const std::pair<const char*, Shape> expected[] = {
      {"conv1.weight", {20, 1, 5, 5}}, {"conv1.bias", {20}}, {"conv2.weight", {50, 20, 5, 5}}, {"conv2.bias", {50}},
      {"fc1.weight", {500, 800}},      {"fc1.bias", {500}},  {"fc2.weight", {10, 500}},        {"fc2.bias", {10}}};
  EXPECT_EQ(file.tensors.size(), std::size(expected));
  for (const auto& [name, shape] : expected) EXPECT_EQ(file.tensors.at(name).shape(), shape) << name;
}

TEST_F(TrainLenet, StartsFromASavedModel) {
  const auto whole = train({"--iterations", "6", "--save", place("whole")});
  ASSERT_EQ(run({"--iterations", "0", "--save", place("initial"), "--quiet"}).code, 0);
  EXPECT_EQ(train({"--iterations", "6", "--init", place("initial")}), whole);
  EXPECT_NE(train({"--iterations", "6", "--init", place("whole")}), whole);
}

TEST_F(TrainLenet, StartsFromTheParametersOfACheckpoint) {
  train({"--iterations", "6", "--save", place("model"), "--checkpoint", place("run")});
  const std::string file = place("run") + "/step-00000006.tern";
  EXPECT_EQ(train({"--iterations", "6", "--init", file}), train({"--iterations", "6", "--init", place("model")}));
}

TEST_F(TrainLenet, FineTunesFromPartOfAFileWithFrozenLayers) {
  train({"--iterations", "2", "--save", place("model")});
  const StateDict whole = read_safetensors(place("model")).tensors;
  StateDict part;
  for (const auto& [name, tensor] : whole)
    if (name != "fc2.weight") part.add(name, tensor);
  write_safetensors(place("part"), part);
  const Outcome outcome = run({"--iterations", "2", "--init", place("part"), "--init-partial", "--freeze", "conv*",
                               "--save", place("tuned"), "--log", place("log")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string note =
      "--init-partial took 7 tensors: conv1.weight, conv1.bias, conv2.weight, conv2.bias, fc1.weight, fc1.bias, "
      "fc2.bias; left of the file: none; not in the file: fc2.weight";
  EXPECT_NE(outcome.out.find("note: " + note), std::string::npos) << outcome.out;
  EXPECT_EQ(read_log(place("log"))[1]["text"], note);
  const StateDict tuned = read_safetensors(place("tuned")).tensors;
  for (const auto& [name, tensor] : tuned)
    EXPECT_EQ(tensor.to_vector<float>() == whole.at(name).to_vector<float>(), name.starts_with("conv")) << name;
  EXPECT_EQ(run({"--iterations", "2", "--freeze", "conv9*"}).err,
            "train_lenet: --freeze 'conv9*' matches none of the model's parameters; the last is 'fc2.bias'\n");
  EXPECT_EQ(run({"--iterations", "2", "--freeze", "*"}).err,
            "train_lenet: --freeze '*' matches all parameters, expected some to train\n");
}

TEST_F(TrainLenet, SavesToTheFileThatItBeganFrom) {
  train({"--iterations", "1", "--save", place("model")});
  for (const char* name : {"model", "./model"})
    train({"--iterations", "1", "--init", place("model"), "--save", place(name)});
}

// The training has the recipe's batch. With another one, the evaluations would have batches of different sizes.
TEST_F(TrainLenet, EvaluatesASavedModelAsTheTrainingDid) {
  train({"--iterations", "5", "--batch-size", "64", "--ema-decay", "0.5", "--save", place("model"), "--checkpoint",
         place("run")});
  const double trained = read_log(place("train.jsonl")).back()["loss"];
  const std::string checkpoint = place("run/step-00000005.tern");
  for (const std::string& file : {place("model"), checkpoint}) {
    train({"--eval-only", "--init", file});
    EXPECT_EQ(read_log(place("train.jsonl")).back()["loss"], trained) << file;
  }
  EXPECT_NE(train({"--iterations", "1", "--init", checkpoint}), train({"--iterations", "1", "--init", place("model")}))
      << "a training started from averages";
  std::filesystem::remove(place("train.jsonl"));
  train({"--eval-only", "--checkpoint", place("run"), "--resume"});
  EXPECT_EQ(read_log(place("train.jsonl")).back()["loss"], trained);
}

}  // namespace
}  // namespace tern
